"""What authors write: the pages in Markdown and the snippets that they show.

`snippets` reads the modules below one folder without importing them, and cuts the code of a
function out of them together with everything that it uses. `expansion` puts that code into the
cells of a page, so that each cell runs without its module, and refuses names with two meanings.
`code` answers what several modules ask of Python code.
`pages` reads the text of a page with Jupytext and hands on a `Page`: a notebook whose cells have
their keys, ready to be executed. Whatever cannot be read says at which line of which file.
Nothing here knows how a page is executed or shown.
"""
