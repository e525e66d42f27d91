"""What a fork server preloads so that its freeze fails."""

import cowpreload.hosts.alone


def freeze():
    raise RuntimeError("planted")


cowpreload.hosts.alone.freeze = freeze
