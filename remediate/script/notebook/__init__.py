"""Jupyter notebooks: their code cells as one script, and edits that land in the cells' source and nowhere else."""
