"""Make the tables of the shop."""

from django.db import migrations, models
from django.db.models.deletion import CASCADE


def _id() -> models.BigAutoField:
    return models.BigAutoField(
        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
    )


class Migration(migrations.Migration):
    """The first one."""

    initial = True

    dependencies = ()

    operations = (
        migrations.CreateModel(
            name="Category",
            fields=[
                ("id", _id()),
                ("name", models.CharField(max_length=40, unique=True)),
            ],
            options={"ordering": ("name",), "verbose_name_plural": "categories"},
        ),
        migrations.CreateModel(
            name="Product",
            fields=[
                ("id", _id()),
                ("name", models.CharField(max_length=80, unique=True)),
                ("description", models.TextField()),
                ("price_cents", models.PositiveIntegerField()),
                ("added", models.DateField()),
                (
                    "category",
                    models.ForeignKey("store.Category", CASCADE, "products"),
                ),
            ],
            options={"ordering": ("id",)},
        ),
        migrations.CreateModel(
            name="Review",
            fields=[
                ("id", _id()),
                ("author", models.CharField(max_length=40)),
                ("stars", models.PositiveSmallIntegerField()),
                ("text", models.TextField()),
                ("written", models.DateField()),
                ("product", models.ForeignKey("store.Product", CASCADE, "reviews")),
            ],
            options={"ordering": ("-written", "id")},
        ),
    )
