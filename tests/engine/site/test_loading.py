"""Whatever makes a browser ask another host is found, and nothing else is."""

import pytest
from _ext.site import offline

HOST = "https://o.example/x"


def asked(text, name="a/page.html"):
    """Return the addresses on other hosts that a file loads."""
    return [address for address, _ in offline.requests(name, text.encode())[0]]


@pytest.mark.parametrize(
    "address",
    [
        '"https://o.example/x"',
        "https://o.example/x",
        "//o.example/x",
        '" https://o.example/x"',
        '"ht\ntps://o.ex\tample/x"',
        "https:/o.example/x",
        "https:o.example/x",
        r"https:\\o.example/x",
        r"\\o.example/x",
        r"/\o.example/x",
        "&#104;ttps://o.example/x",
        "HTTPS://o.example/x",
        "ftp://o.example/x",
        "/&Tab;/o.example/x",
    ],
)
@pytest.mark.parametrize("tag", ["<img src={}>", "<img alt=''src = {}>", "<IMG\nSRC={} >"])
def test_every_way_to_write_an_address_is_read_as_a_browser_does(tag, address):
    assert asked(tag.format(address))


@pytest.mark.parametrize(
    "tag",
    [
        "<script src=@></script>",
        "<audio src=@></audio>",
        "<video src=@></video>",
        "<video poster=@></video>",
        "<video><source src=@></video>",
        "<video><track src=@></video>",
        "<embed src=@>",
        "<object data=@></object>",
        "<input type=IMAGE src=@>",
        "<iframe src=@></iframe>",
        "<frameset><frame src=@></frameset>",
        '<img srcset="a.png 1x, @ 2x">',
        '<picture><source srcset="@,a.png 2x"></picture>',
        '<link rel=preload as=image imagesrcset="a.png 1x, @ 2x">',
        *(
            f'<link rel="{relation}" href=@>'
            for relation in (
                "stylesheet",
                "alternate stylesheet",
                "icon",
                "Shortcut Icon",
                "apple-touch-icon",
                "preload",
                "modulepreload",
                "prefetch",
                "preconnect",
                "dns-prefetch",
                "manifest",
            )
        ),
        '<meta http-equiv=Refresh content="0; URL=@">',
        '<meta http-equiv=refresh content="3;@">',
        "<body background=@>",
        "<table background=@><tr><td></table>",
        "<base href=@>",
        "<a ping=@ href=#>x</a>",
        "<svg><image href=@ /></svg>",
        "<svg><image xlink:href=@ /></svg>",
        "<svg><use href='@#a'/></svg>",
        "<svg><filter><feImage href=@ /></filter></svg>",
        "<svg><linearGradient href=@ /></svg>",
        "<svg><script href=@ /></svg>",
        "<svg><animate attributeName=href to=@ /></svg>",
        "<svg><rect fill='url(@#a)'/></svg>",
        "<svg><rect filter='u\\72l(@#a)'/></svg>",
        "<template><img src=@></template>",
        "<noscript><img src=@></noscript>",
    ],
)
def test_every_element_that_loads_is_known(tag):
    assert asked(tag.replace("@", HOST))


@pytest.mark.parametrize(
    "tag",
    [
        '<iframe srcdoc="<img src=@>"></iframe>',
        '<iframe srcdoc="&lt;iframe srcdoc=&quot;<img src=@>&quot;>"></iframe>',
        '<iframe src="data:text/html,<img src=@>"></iframe>',
        '<iframe src="data:text/html;base64,PGltZyBzcmM9aHR0cHM6Ly9vLmV4YW1wbGUveD4="></iframe>',
        '<link rel=stylesheet href="data:text/css,%40import %22@%22">',
        "<iframe src=\"javascript:fetch('@')\"></iframe>",
        "<img src=x.png onerror=\"fetch('@')\">",
        "<body onload=\"fetch('@')\">",
    ],
)
def test_what_stands_within_an_attribute_is_read_too(tag):
    assert asked(tag.replace("@", HOST))


@pytest.mark.parametrize(
    "style",
    [
        '@import "@";',
        "@import url(@) print;",
        r'@\69mport "@";',
        '@import/**/"@";',
        "p { background: url(@) }",
        "p { background: URL( '@' ) }",
        r"p { background: u\72l(@) }",
        'p { background: image-set("@" 1x) }',
        "p { background: -webkit-image-set(url(@) 1x) }",
        "p { background: cross-fade(url(@), red) }",
        "@media print { @supports (a: b) { p { cursor: url(@), auto } } }",
        "@font-face { src: local(x), url(@) }",
        ":root { --picture: url(@) }",
    ],
)
@pytest.mark.parametrize("where", ["a.css", "element", "drawing", "a.svg"])
def test_styles_are_read_wherever_they_stand(where, style):
    style = style.replace("@", HOST, 1) if not style.startswith("@") else style
    style = style.replace('"@"', f'"{HOST}"').replace("(@)", f"({HOST})")
    if where == "a.css":
        assert asked(style, where)
    elif where == "a.svg":
        assert asked(f'<svg xmlns="http://www.w3.org/2000/svg"><style>{style}</style></svg>', where)
    else:
        text = f"<style>{style}</style>"
        assert asked(text if where == "element" else f"<svg>{text}</svg>")


@pytest.mark.parametrize(
    "style", ["background: url(@)", r"background: u\72l(@)", "background: image-set('@' 1x)"]
)
def test_the_style_of_one_element_is_read(style):
    assert asked(f'<p style="{style.replace("@", HOST)}">')


@pytest.mark.parametrize(
    "script",
    [
        "import a from '@'",
        "import '@'",
        "export * from '@'",
        "import('@')",
        "fetch('@')",
        "window.fetch?.('@')",
        "self['fetch']('@')",
        "fetch(`@/${name}`)",
        "fetch('ht' + 'tps://o.example/x' + name)",
        r"fetch('\x68ttps:\u002f/o.example/x')",
        "const place = '@'; fetch(place)",
        "fetch(new URL('y', '@'))",
        "importScripts('a.js', '@')",
        "new Worker('@')",
        "new SharedWorker('@')",
        "new WebSocket('wss://o.example')",
        "new EventSource('@')",
        "navigator.sendBeacon('@', 'x')",
        "navigator.serviceWorker.register('@')",
        "request.open('GET', '@')",
        "element.src = '@'",
        "new Image().src = '@'",
        "element.setAttribute('src', '@')",
        "link.href = '@'",
        "location = '@'",
        "window.location.href = '@'",
        "window.location.replace('@')",
        "document.write('<img src=@>')",
        "element.innerHTML = '<img src=@>'",
        "element.style.background = 'url(@)'",
        "new FontFace('x', 'url(@)')",
    ],
)
@pytest.mark.parametrize("where", ["a.js", "a.mjs", "element", "module"])
def test_addresses_that_scripts_load_are_found(where, script):
    script = script.replace("@", HOST)
    if where.startswith("a."):
        assert asked(script, where)
    else:
        kind = " type=module" if where == "module" else ""
        assert asked(f"<script{kind}>{script}</script>")


def test_maps_of_imports_are_read():
    text = '<script type=importmap>{"imports": {"x": "https://o.example/x"}}</script>'
    assert asked(text) == [HOST]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<a href="https://o.example">x</a><area href="https://o.example">'),
        ("a.html", '<form action="https://o.example"><button formaction="//o.example">'),
        *(
            ("a.html", f'<link rel="{relation}" href="https://o.example">')
            for relation in (
                "canonical",
                "author",
                "license",
                "next",
                "prev",
                "search",
                "alternate",
            )
        ),
        ("a.html", '<svg xmlns="http://www.w3.org/2000/svg"><use href="#a"/></svg>'),
        ("a.html", '<svg><a href="https://o.example"><text>x</text></a></svg>'),
        ("a.html", '<svg><rect fill="url(#a)" style="filter: url(#b)"/></svg>'),
        ("a.html", '<img src="data:image/png;base64,//aa"><iframe src="about:blank"></iframe>'),
        ("a.html", "<pre>&lt;img src=https://o.example&gt; fetch('https://o.example')</pre>"),
        ("a.html", "<textarea><img src=https://o.example></textarea>"),
        ("a.html", '<!-- <img src="https://o.example"> -->'),
        ("a.html", '<p title="//o.example" data-src="https://o.example">'),
        ("a.html", '<input value="https://o.example">'),
        ("a.html", '<meta property="og:image" content="https://o.example">'),
        ("a.html", '<script type="application/ld+json">{"url": "https://o.example"}</script>'),
        ("a.css", "/* url(https://o.example) */ p::after { content: 'https://o.example' }"),
        ("a.css", "@namespace svg url(http://www.w3.org/2000/svg); p { color: red }"),
        ("a.css", "@namespace 'http://www.w3.org/1999/xhtml';"),
        ("a.js", "/* https://o.example */ const licence = 'https://o.example/licence'"),
        ("a.js", "document.createElementNS('http://www.w3.org/2000/svg', 'g')"),
        ("a.js", "anchor.href = 'https://o.example'; text.replace('https://o.example', '')"),
        ("a.js", "throw new Error('see https://o.example')"),
        ("a.js", "state.data = 'https://o.example'; event.data = '//o.example'"),
        ("a.js", "fetch('data.json').then(() => log('https://o.example'))"),
        ("a.svg", '<!DOCTYPE svg PUBLIC "-//W3C" "http://www.w3.org/x.dtd"><svg/>'),
    ],
)
def test_what_is_only_named_or_clicked_is_left_alone(name, text):
    assert asked(text, name) == []


def test_a_drawing_is_read_as_xml():
    text = (
        '<!DOCTYPE svg [<!ENTITY place "https://o.example/x">]>'
        '<s:svg xmlns:s="http://www.w3.org/2000/svg" xmlns:l="http://www.w3.org/1999/xlink">'
        '<s:image l:href="&place;"/></s:svg>'
    )
    assert asked(text, "a.svg") == [HOST]
    sheet = '<?xml-stylesheet href="https://o.example/x"?><svg xmlns="http://www.w3.org/2000/svg"/>'
    assert asked(sheet, "a.svg") == [HOST]


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("b.png?v=1#x", "a/b.png"),
        ("../b.png", "b.png"),
        ("/b.png", "b.png"),
        ("%62.png", "a/b.png"),
        ("sub/", "a/sub"),
        ("../../b.png", "../b.png"),
        ("https://o.example/b.png", None),
        ("#x", None),
        ("", None),
        ("data:image/png;base64,aa", None),
    ],
)
def test_addresses_within_the_site_become_paths(address, path):
    assert offline.target(address, "a/page.html") == path


def test_the_address_of_a_page_can_be_another():
    _, inside = offline.requests("a/page.html", b'<base href="../b/"><img src="c.png">')
    assert inside == [["b/c.png", "<img src>"]]
