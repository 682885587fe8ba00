"""Rules by which instances wait, run, are tried again, are late or given up."""
