"""Many colos behind one face, which Apache Falcon calls Prism: changes go to all that they concern."""
