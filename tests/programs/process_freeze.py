"""What a fork server preloads to be frozen by hand."""

import gc

gc.collect()
gc.freeze()
