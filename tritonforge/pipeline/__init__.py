"""The order of the stages: the only package that knows more than one of them."""
