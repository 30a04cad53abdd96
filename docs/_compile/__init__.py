"""Compile what modules of snippets declare, and record the programs. No site loads it.

`compiling` compiles a function with JAX for the devices that conf.py describes, none of which has
to be here. The jaxpr is counted and drawn by `jaxprs`; `hlo` cleans the text of a program, and
finds its kernels and collectives in it, and `traffic` counts the bytes that the kernels move. What
comes of it is one of `compiled.programs`.
"""
