"""How a program is run: a `Command` is a value, a `Process` is a running child with an owner."""
