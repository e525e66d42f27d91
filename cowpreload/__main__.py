"""`python -m cowpreload`."""

import sys

from cowpreload.cli import main

sys.exit(main())
