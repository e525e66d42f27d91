#!/usr/bin/env python
"""Run Django's management commands for the example shop.

`python manage.py seed` makes and fills the database; everything else is Django's own.
"""

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    """Hand the command line to Django with the settings of the shop."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
