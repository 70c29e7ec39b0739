"""Reads and prints the daily report."""


def read_report(path):
    f = open(path)
    data = f.read()
    f.close()
    return data


def print_report(path):
    for line in read_report(path).split("\n"):
        print(line)
