"""What pages printed: kept for this machine, recorded for others.

`output_format` is the one form of a page's outputs, wherever they lie, with one reader and one
writer. `cache` keeps the outputs of this machine's pages, by a key of all that decided them.
`recordings` keeps what a device gave, for people who do not have it; `sanitising` takes out what
names the machine, and checks what is read.
`states` says whether a recording belongs to its page, and `device_outputs` puts a page's outputs
beside its recordings: `matching` finds what belongs to which cell. `outputs` cleans outputs when
they leave a run, and prepares them for being shown. `output_kinds` are those that features add.
"""
