"""A small stock list."""


class Inventory:
    """Counts pieces by name."""

    def __init__(self):
        self.items = {}

    def add(self, name, quantity):
        """Put `quantity` pieces of `name` in stock and return how many there are now."""
        self.items[name] = self.items.get(name, 0) + quantity
        return self.items[name]

    def remove(self, name, quantity):
        """Take `quantity` pieces of `name` out of stock and return how many are left."""
        if self.items.get(name, 0) < quantity:
            raise ValueError(f"not enough {name} in stock")
        return self.items[name]

    def total(self):
        """Return how many pieces there are of everything."""
        return sum(self.items.values())
