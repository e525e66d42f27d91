"""Prices in templates."""

from django import template

register = template.Library()


@register.filter
def euros(cents: int) -> str:
    """Return an amount in euro cents as people write it: 123456 is "€1,234.56"."""
    return f"€{cents // 100:,}.{cents % 100:02}"
