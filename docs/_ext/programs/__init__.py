"""Programs that functions are compiled to, for devices that need not be here.

`declared` finds the functions that pages name and the shapes that their modules declare for
them, and `targets` the devices that conf.py describes. `compiling` compiles them with JAX, whose
jaxpr `jaxprs` counts and draws, and hands on one of `records`. `store` keeps the files and says
whether each still belongs to its function. `hlo` finds kernels and collectives in the text of a
program, when it is shown.
"""
