"""The one place of the version: read by setup.py, the package and the plugin build."""

__version__ = "0.1.0"
