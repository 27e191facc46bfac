"""Reading a script's layout out of its syntax tree."""
