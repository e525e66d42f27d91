"""The words that names, offers and reviews of the shop are made of.

Data only. Changing a line changes the seeded database and the catalogue.
"""

# Name of the category, and the word for one thing of it.
CATEGORIES = (
    ("Lamps", "lamp"),
    ("Chairs", "chair"),
    ("Tables", "table"),
    ("Shelves", "shelf"),
    ("Rugs", "rug"),
    ("Vases", "vase"),
    ("Clocks", "clock"),
    ("Mirrors", "mirror"),
    ("Kettles", "kettle"),
    ("Baskets", "basket"),
    ("Blankets", "blanket"),
    ("Frames", "frame"),
)

MATERIALS = (
    *("oak", "birch", "walnut", "bamboo", "steel", "brass", "copper", "glass"),
    *("marble", "linen", "wool", "cotton", "leather", "ceramic", "cork", "rattan"),
)

# Three of them make the name of a model; 20 * 20 * 20 names are possible.
SYLLABLES = (
    *("ta", "vi", "ra", "lo", "me", "ni", "so", "ka", "du", "fe"),
    *("gri", "bel", "mor", "sti", "pan", "ler", "vo", "hu", "jo", "zem"),
)

COLOURS = (
    *("white", "black", "sand", "moss", "rust", "plum", "slate", "amber"),
    *("coral", "navy", "olive", "pearl"),
)

SIZES = ("small", "medium", "large", "extra large")

SELLERS = (
    *("Harbour House", "Northlight", "Mill Lane", "Old Foundry", "Kiln Works"),
    *("Riverside", "Attic Goods", "Lantern Hill", "Green Door", "Tilia"),
)

TAGS = (
    *("new", "handmade", "recycled", "outdoor", "gift", "bestseller", "limited"),
    *("washable", "foldable", "heavy", "fragile", "vintage"),
)

AUTHORS = (
    *("Ada", "Bela", "Carlos", "Dina", "Emil", "Farah", "Goran", "Hanna"),
    *("Ivo", "Jana", "Kofi", "Lena", "Mina", "Nils", "Olga", "Pavel"),
)

# What a review says, from one star to five.
OPINIONS = (
    "It broke in the first week and I sent it back.",
    "Smaller than it looks in the picture.",
    "Does what it should, no more.",
    "Well made, and it came a day early.",
    "The best one I have had, I ordered a second.",
)
