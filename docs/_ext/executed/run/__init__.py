"""Executing pages: every page runs in a kernel of its own, and one that fails fails alone.

`results` takes outputs from the cache by their `key`, and has the rest executed: `schedule` hands
on each page as soon as it has run, in parallel where it measures nothing, alone on the machine
where it does, and `progress` says meanwhile what runs. `page_run` executes one page in one kernel,
and `outcome` is what came of it; `availability` says which of its cells cannot run here,
`expectations` judges what they raise. `recorder` executes pages to record what they gave. Most
kernels are forked: `fork_template` is a parent, which has imported frameworks, `forkserver` keeps
parents from one build to the next, and `provisioning` asks it for a kernel or starts a process that
only this page has, as `imports` decides. `kernel` is the code inside of a kernel, which bounds what
a cell prints and writes the tracebacks of errors; `client` executes cells in it. `environment`,
`devices` and `machine` know which variables kernels see, what devices are called, and how much of a
machine may be used.
"""
