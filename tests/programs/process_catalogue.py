"""What the children of process_pool.py read, 20 MB a hundred thousand articles."""

import os

ARTICLES = int(os.environ.get("SHOP_ARTICLES", "60000"))
CATALOGUE = [
    {"name": f"article {i}", "price": i / 100, "tags": [f"a{i}", f"b{i}"]}
    for i in range(ARTICLES)
]
