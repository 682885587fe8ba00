"""Workflow engines, one file each: the keys of its workflows, and how it computes them. A new file is a new engine.

Definitions are read without Spark, so only :meth:`~falcon_assets.model.workflow.Workflow.compute` imports it.
"""
