"""A fleet of engines and the people who use it, as a simulation of discrete events."""
