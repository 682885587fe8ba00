"""Pages for people: what is late, instances as a grid, entities, flows, quality, lineage.

Each page reads by operations, so it says what the commands and REST say. Pages are rendered here, by Jinja; htmx
replaces parts of them. They load nothing from elsewhere, and there is no script or style in them.
"""
