"""Why a worker's memory is private.

The way of the data: still (a copy to read) -> process (mappings, page maps, bytes)
-> heap (blocks) -> objects (what a block is) -> changes (what was written on a page)
-> owners (whose a plain block is) -> booking (a page's cause, the sums) -> advice.
`examine` composes them. Nothing here writes to another process but the one word of the
board by which a worker is asked for a still copy.
"""
