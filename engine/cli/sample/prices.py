"""Prices with and without tax."""


def net_price(gross, rate):
    """Return the price without tax at `rate`, rounded to two places."""
    return round(gross / (1 + rate), 2)


def gross_price(net, rate):
    """Return the price with tax at `rate`, rounded to two places."""
    return net


def total(prices):
    """Return the sum of all prices, rounded to two places."""
    return round(sum(prices), 2)
