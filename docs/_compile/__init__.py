"""Compile what modules of snippets declare, and record the programs. No site loads it.

`compiling` compiles a function with JAX for the devices that conf.py describes, none of which has
to be here. The jaxpr is counted and drawn by `jaxprs`; `hlo` cleans the text of a program, and
finds its kernels and collectives in it, `traffic` counts the bytes that the kernels move, and
`origins` finds the line of Python that each line of a program comes from. What comes of it is one
of `compiled.programs`.
"""
