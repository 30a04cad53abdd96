// Layouts to try: who holds which shard of an array, and what an operation sends. What is held is
// worked out here; what is sent are the data of the page's table, a row for each choice, and JAX's
// words for what it refuses stand in what the page prints. Without scripts there are pictures and text.
(() => {
  "use strict";

  const { element } = window.book;
  const DEVICES = 8;
  const ITEM_BYTES = 4;
  // Pixels: where a shard lies, and a whole array.
  const SIDE = 32;
  const WHOLE = 100;
  // Milliseconds that a shard is on its way.
  const MOVE = 450;

  const product = (numbers) => numbers.reduce((all, each) => all * each, 1);
  const range = (length) => [...Array(length).keys()];
  const listed = (words) => [words.slice(0, -1).join(", "), words.at(-1)].filter(Boolean).join(" and ");
  const tuple = (words) => `(${words.join(", ")}${words.length === 1 ? "," : ""})`;
  // One entry of a PartitionSpec, and all of it, as Python writes them.
  const entry = (axes, quote) => {
    const names = axes.map((axis) => `${quote}${axis}${quote}`);
    return names.length > 1 ? tuple(names) : (names[0] ?? "None");
  };
  const specOf = (spec, quote = '"') => `P(${spec.map((axes) => entry(axes, quote)).join(", ")})`;

  // In the largest unit in which a number of bytes has few digits; it is never rounded.
  const bytesOf = (count) => {
    for (const [unit, size] of [["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
      if (count >= size && count % (size / 8) === 0) return `${count / size} ${unit}`;
    }
    return `${count} bytes`;
  };

  // What JAX says in the page of the three examples in REFUSED, with other values in place of theirs.
  const said = (example, values) => {
    const printed = document.querySelector(".tag_layout-refusals .output")?.textContent ?? "";
    const line = printed.trim().split("\n")[example]?.split(" Got shape")[0] ?? "";
    return Object.entries(values).reduce((text, [old, value]) => text.replace(old, () => value), line);
  };

  // Why JAX refuses a mesh, a spec or a length, in its words; nothing where it does not.
  const refusal = (mesh, shape, spec) => {
    const sizes = mesh.map(({ size }) => size);
    if (product(sizes) > DEVICES) return said(0, { "(4, 4)": tuple(sizes) });
    const named = spec.flat();
    const twice = [...new Set(named)].filter((axis) => named.indexOf(axis) < named.lastIndexOf(axis)).sort();
    if (twice.length) {
      const names = twice.map((axis) => `\`${axis}\``).join(", ");
      return said(1, { "P('x', 'x')": specOf(spec, "'"), "`x`": names });
    }
    for (const [axis, names] of spec.entries()) {
      const parts = product(names.map((name) => mesh.find((each) => each.name === name).size));
      if (shape[axis] % parts) {
        const written = tuple(names.map((name) => `'${name}'`));
        return said(2, { "('x',)": written, "axis 0": `axis ${axis}`, "4 times": `${parts} times`, "size 6": `size ${shape[axis]}` });
      }
    }
    return null;
  };

  // What each device holds: where its shard starts and stops along each axis. The devices are in the
  // mesh row by row, and of two names in an entry the first is the slower.
  const held = (mesh, shape, spec) =>
    range(product(mesh.map(({ size }) => size))).map((device) => {
      const last = mesh.at(-1).size;
      const at = mesh.length > 1 ? [Math.floor(device / last), device % last] : [device];
      return shape.map((length, axis) => {
        let [part, parts] = [0, 1];
        for (const name of spec[axis]) {
          const place = mesh.findIndex((each) => each.name === name);
          part = part * mesh[place].size + at[place];
          parts *= mesh[place].size;
        }
        return [(part * length) / parts, ((part + 1) * length) / parts];
      });
    });

  // The devices that hold each shard, in the order of the devices.
  const holders = (parts) => {
    const found = new Map();
    parts.forEach((part, device) => {
      const key = JSON.stringify(part);
      found.set(key, [...(found.get(key) ?? []), device]);
    });
    return found;
  };

  // The colours of the page's pictures.
  const INKS = [...new Set([...document.querySelectorAll(".picture-placement svg")].map((svg) => svg.getAttribute("style")))];
  const inkOf = (number) => INKS[number % INKS.length] ?? "";
  const drawing = (ink, width, height, content) => `<svg class="drawing" style="${ink}" width="${width}" height="${height}" aria-hidden="true">${content}</svg>`;
  const rect = (kind, [[top, bottom], [left, right]]) => `<rect class="${kind}" x="${left}%" y="${top}%" width="${right - left}%" height="${bottom - top}%"/>`;

  // An array and its shards: the two axes of it that can be drawn, those that are split first.
  const laidOut = (name, shape, parts) => {
    const split = range(shape.length).filter((axis) => parts.some((part) => part[axis][1] - part[axis][0] < shape[axis]));
    const shown = [...new Set([...split, ...range(shape.length)])].slice(0, 2).sort();
    const sides = (part) => [[0, 100], ...shown.map((axis) => part[axis].map((end) => (100 * end) / shape[axis]))].slice(-2);
    const found = holders(parts);
    const keys = [...found.keys()];
    const ink = (part) => inkOf(keys.indexOf(JSON.stringify(part)));
    return { name, shape, parts, found, sides, ink, flat: shown.length < 2 };
  };

  // A whole array, each shard in its colour, with the devices that hold it.
  const whole = ({ name, shape, found, sides, ink, flat }) => {
    const shards = [...found].map(([key, devices]) => {
      const [rows, columns] = sides(JSON.parse(key));
      const middle = ([start, stop]) => `${(start + stop) / 2}%`;
      return `<g style="${ink(JSON.parse(key))}">${rect("bar", [rows, columns])}<text x="${middle(columns)}" y="${middle(rows)}">${devices.join(" ")}</text></g>`;
    });
    return `<div><p>${name} <code>${shape.join(" × ")}</code></p>${drawing("", WHOLE, flat ? WHOLE / 5 : WHOLE, shards.join(""))}</div>`;
  };

  // What a device holds of arrays: where it lies in each, and the slice.
  const holding = (arrays) => (device) =>
    arrays.map(({ name, shape, parts, sides, ink, flat }) => {
      const slices = parts[device].map(([start, stop], axis) => (stop - start === shape[axis] ? ":" : `${start}:${stop}`));
      const picture = drawing(ink(parts[device]), SIDE, flat ? SIDE / 3 : SIDE, rect("track", [[0, 100], [0, 100]]) + rect("bar", sides(parts[device])));
      return `<span class="shard"><span>${name} ${picture}</span><code>[${slices.join(", ")}]</code></span>`;
    }).join("");

  // The devices of a mesh, its first axis downwards and its second across, each with what is in it.
  // Groups of devices get an outline, which is open towards a neighbour of the same group.
  const meshed = (mesh, inside, groups = []) => {
    const [down, across = { size: 1 }] = mesh;
    const cell = (row, column) => {
      const device = row * across.size + column;
      const own = groups.findIndex((group) => group.includes(device));
      const beside = { up: device - across.size, down: device + across.size };
      if (column) beside.left = device - 1;
      if (column + 1 < across.size) beside.right = device + 1;
      const open = Object.keys(beside).filter((side) => groups[own]?.includes(beside[side]));
      return `<td class="${own < 0 ? "" : "together"} ${open.join(" ")}" style="${inkOf(own)}"><div><span>device ${device}</span>${inside(device)}</div></td>`;
    };
    const row = (n) => `<tr><th scope="row">${down.name} = ${n}</th>${range(across.size).map((column) => cell(n, column)).join("")}</tr>`;
    const heads = range(across.size).map((n) => `<th scope="col">${across.name} = ${n}</th>`);
    const head = across.name ? `<thead><tr><td></td>${heads.join("")}</tr></thead>` : "";
    return `<table class="mesh" style="--across: ${across.size}">${head}<tbody>${range(down.size).map(row).join("")}</tbody></table>`;
  };

  // Collectives as steps: what they do, and what a device at a place of its group has afterwards in
  // the slots of its group, from which device, and from which of its slots that is sent.
  const gathered = (group) => group.map((device, n) => ({ device, slot: n }));
  const STEPS = {
    gather: ["each device receives the shards of the others in its group", gathered],
    exchange: ["each device sends the others in its group a part of its shard each", (group, place) => group.map((device) => ({ device, slot: place }))],
    add: ["each device adds up one part of the sum, of which it receives what the others have", (group, place) => group.map((_, n) => (n === place ? { label: "Σ", device: group[n], added: group.map((device) => ({ device, slot: place })) } : {}))],
    collect: ["each device receives the other parts of the sum", (group) => gathered(group).map((sent) => ({ ...sent, label: "Σ" }))],
    pass: ["a shard goes to another device", ([device]) => [{ device, slot: 0 }]],
  };
  const PARTS = { "all-gather": ["gather"], "all-to-all": ["exchange"], "all-reduce": ["add", "collect"], "reduce-scatter": ["add"], "collective-permute": ["pass"] };

  // A device's slots: whose number is in each, and when it arrives. What is its own is there before.
  const slotted = (group, place, slots) => {
    const written = ({ device, slot, label = device ?? "", added = [] }, n) => {
      const round = (place - group.indexOf(device) + group.length) % group.length;
      const from = slot === undefined ? "" : ` data-from="${device}.${slot}" data-round="${round}"`;
      return `<b data-at="${group[place]}.${n}"${from} style="${inkOf(device)}">${label}${added.map((each) => written(each, "")).join("")}</b>`;
    };
    return `<span class="slots">${slots.map(written).join("")}</span>`;
  };

  // The steps of an answer: operands, collectives, result. `received` is before a step, in bytes.
  const stepsOf = (sent, operands, result) => {
    let received = 0;
    const step = (text, inside, groups = [], bytes = 0, rounds = 0) => {
      received += bytes;
      return { text, inside, groups, bytes, rounds, received: received - bytes };
    };
    const parts = ([kind, axes, groups, bytes]) => PARTS[kind].map((part, _, { length }) => {
      const [does, slots] = STEPS[part];
      const passes = part === "pass";
      const inside = (device) => {
        const group = groups.find((each) => (passes ? each[1] === device : each.includes(device)));
        const place = group.lastIndexOf(device);
        return slotted(group, place, slots(group, place));
      };
      const framed = passes ? groups.filter(([from, to]) => from !== to).map(([, to]) => [to]) : groups;
      return step(`${kind} along ${listed([...axes])}: ${does}`, inside, framed, bytes / length, groups[0].length - 1);
    });
    const names = listed(operands.map(({ name }) => name));
    return [step(`what each device holds of ${names}`, holding(operands)), ...sent.flatMap(parts), step("what each device holds of the result", holding([result]))];
  };

  // A picture for each step, and what moves on the way to it, unless motion is not wanted.
  const player = (mesh, steps) => {
    const next = element("button", { type: "button" });
    const text = element("p", { ariaLive: "polite" });
    const count = element("p");
    const picture = element("div");
    const still = matchMedia("(prefers-reduced-motion: reduce)");
    const all = steps.at(-1).received;
    let at = -1;

    const counted = ({ received, bytes, rounds }, round) => {
      const now = received + (rounds && (bytes * round) / rounds);
      count.textContent = all ? `Received per device: ${bytesOf(now)} of ${bytesOf(all)}` : "Nothing is sent";
    };
    const move = (step) => {
      const ways = [...picture.querySelectorAll("[data-from]")].map((sent) => {
        const [from, to] = [picture.querySelector(`[data-at="${sent.dataset.from}"]`), sent].map((each) => each.getBoundingClientRect());
        return [sent, `translate(${from.left - to.left}px, ${from.top - to.top}px)`, +sent.dataset.round];
      });
      for (const [sent, transform, round] of ways) {
        const timing = { duration: MOVE, delay: MOVE * Math.max(0, round - 1), fill: "backwards", easing: "ease-in-out" };
        const moving = sent.animate([{ transform, opacity: 1 }, { transform: "none", opacity: 1 }], timing);
        if (round) moving.onfinish = () => sent.isConnected && counted(step, round);
      }
    };
    const turn = () => {
      at = (at + 1) % steps.length;
      const step = steps[at];
      const moves = step.rounds && !still.matches;
      text.textContent = `Step ${at + 1} of ${steps.length}: ${step.text}.`;
      next.textContent = at + 1 < steps.length ? "Next step" : "From the start";
      picture.innerHTML = meshed(mesh, step.inside, step.groups);
      counted(step, moves ? 0 : step.rounds);
      if (moves) move(step);
    };
    next.addEventListener("click", turn);
    turn();
    return [element("div", { className: "steps" }, next, text, count), picture];
  };

  let fields = 0;
  const labelled = (label, field) => {
    field.id = `layout-${fields++}`;
    return element("span", {}, element("label", { htmlFor: field.id, textContent: label }), " ", field);
  };
  const fill = (select, options) => {
    const before = select.value;
    select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
    if (options.some(([value]) => value === before)) select.value = before;
  };
  const framed = (place, rows) => {
    const form = element("form", { className: "layouts" }, ...rows);
    const said = element("output");
    const figure = element("figure", { className: "picture" });
    form.addEventListener("submit", (event) => event.preventDefault());
    place.replaceChildren(form, said, figure);
    return { form, said, figure };
  };
  const group = (title, ...rows) => element("fieldset", {}, element("legend", { textContent: title }), ...rows);

  const placement = (place) => {
    const sizes = range(DEVICES).map((n) => new Option(n + 1));
    const axes = ["x", "y"].map((name, n) => {
      const size = element("select", {}, ...(n ? [new Option("none", 0)] : []), ...sizes.map((each) => each.cloneNode(true)));
      size.value = n ? 2 : 4;
      return { name: element("input", { value: name, size: 6, spellcheck: false, autocomplete: "off" }), size };
    });
    const lengths = [8, 8, ""].map((value) => element("input", { type: "number", min: 1, max: 99999, value }));
    const splits = ["1", "2", "0"].map((choice) => element("select", {}, new Option("", choice)));
    const { form, said, figure } = framed(place, [
      group("Mesh", ...axes.map(({ name, size }, n) =>
        element("div", {}, labelled(`axis ${n + 1}`, name), labelled("devices", size)))),
      group("Array of float32", ...lengths.map((length, n) =>
        element("div", {}, labelled(`length ${n}`, length), labelled("along", splits[n])))),
    ]);

    const show = () => {
      const mesh = axes.map(({ name, size }) => ({ name: name.value.trim(), size: +size.value })).filter(({ size }) => size);
      const names = mesh.map(({ name }) => name);
      const choices = [[], ...names.map((name) => [name]), ...(names.length > 1 ? [names, [...names].reverse()] : [])];
      const rank = lengths.findIndex(({ value }) => !value);
      const shape = lengths.slice(0, rank < 0 ? lengths.length : rank).map(({ value }) => +value);
      // The place of a choice stays when an axis gets another name.
      for (const split of splits) fill(split, choices.map((axes, n) => [`${n}`, entry(axes, '"')]));
      for (const [n, { parentElement }] of splits.entries()) parentElement.hidden = n >= shape.length;
      axes[1].name.disabled = names.length < 2;
      figure.hidden = true;
      if (names.some((name) => !/^\w+$/.test(name)) || new Set(names).size < names.length) {
        said.textContent = "Give each axis of the mesh a name of its own, of letters and digits.";
        return;
      }
      if (!shape.length || shape.some((length) => !(Number.isInteger(length) && length > 0))) {
        said.textContent = "Give the array a first length, and whole numbers from 1 on.";
        return;
      }
      const spec = shape.map((_, n) => choices[splits[n].value]);
      const code = element("code", { textContent: `mesh = jax.make_mesh(${tuple(mesh.map(({ size }) => size))}, ${tuple(names.map((name) => `"${name}"`))})\nx = jax.device_put(x, jax.NamedSharding(mesh, jax.${specOf(spec)}))` });
      const refused = refusal(mesh, shape, spec);
      if (refused !== null) {
        said.replaceChildren(element("pre", {}, code), element("p", {}, element("strong", { textContent: "JAX refuses. " }), element("code", { textContent: refused })));
        return;
      }
      const parts = held(mesh, shape, spec);
      const found = [...holders(parts).values()];
      const block = parts[0].map(([start, stop]) => stop - start);
      const each = `${tuple(block)}, ${bytesOf(ITEM_BYTES * product(block))} on each device`;
      const unused = names.filter((name) => !spec.flat().includes(name));
      const many = found.length > 1 ? `${found.length} different shards of ${each}.` : `Each device holds the whole array, ${each}.`;
      const replicas = found.length > 1 && unused.length ? ` Nothing is sharded along ${listed(unused)}, so the same shard is on devices ${found.map(listed).join("; ")}.` : "";
      said.replaceChildren(element("pre", {}, code), element("p", { textContent: many + replicas }));
      const array = laidOut("x", shape, parts);
      figure.innerHTML = `<div class="arrays">${whole(array)}</div>${meshed(mesh, holding([array]))}`;
      figure.hidden = false;
    };
    form.addEventListener("input", show);
    show();
  };

  // A row of the table: what is chosen by it, in words, and its answer. An array is [shape, spec].
  const choice = (row) => {
    const { mesh, arrays, sent, accepted } = JSON.parse(row.dataset.plain);
    const [, operation, , , , type, refusal] = [...row.cells].map(({ textContent }) => textContent.trim());
    const [a, b] = arrays.slice(0, -1).map(([, spec]) => specOf(spec));
    return { mesh: mesh.join(" × "), operation, a, b, sizes: mesh, arrays, sent, type, refusal: accepted ? "" : refusal };
  };

  const communication = (place, rows) => {
    const keys = ["mesh", "operation", "a", "b"];
    const selects = Object.fromEntries(keys.map((key) => [key, element("select")]));
    const labels = keys.map((key) => labelled(key, selects[key]));
    const { form, said, figure } = framed(place, [element("div", {}, ...labels.slice(0, 2)), element("div", {}, ...labels.slice(2))]);

    const show = () => {
      let left = rows;
      for (const key of keys) {
        const values = [...new Set(left.map((row) => row[key]))].filter(Boolean);
        selects[key].parentElement.hidden = !values.length;
        fill(selects[key], values.map((value) => [value, value]));
        if (values.length) left = left.filter((row) => row[key] === selects[key].value);
      }
      const [{ sizes, operation, arrays, sent, type, refusal }] = left;
      const moves = operation.startsWith("jax.reshard");
      labels.at(-1).firstChild.textContent = moves ? "to" : "b";
      const refused = !refusal ? [] : [element("p", {}, element("strong", { textContent: "With explicit axes JAX refuses. " }), element("code", { textContent: `ShardingTypeError: ${refusal}` })), element("p", { textContent: "With automatic axes the compiler makes of it:" })];
      const list = sent.map(([kind, axes, groups, bytes]) => {
        const among = kind === "collective-permute" ? "" : `, among ${groups[0].length} devices`;
        return element("li", {}, element("strong", { textContent: kind }), ` along ${listed([...axes])}${among}: each receives ${bytesOf(bytes)}`);
      });
      if (!list.length) list.push(element("li", { textContent: "nothing is sent" }));
      said.replaceChildren(...refused, element("ul", {}, ...list), element("p", {}, "The result is ", element("code", { textContent: `float32${type}` })));
      const mesh = sizes.map((size, n) => ({ name: "xy"[n], size }));
      const made = ([shape, spec], n, all) => laidOut(n + 1 < all.length ? "ab"[n] : "result", shape, held(mesh, shape, spec));
      const laid = (moves ? [arrays[0], arrays.at(-1)] : arrays).map(made);
      const wholes = element("div", { className: "arrays", innerHTML: laid.map(whole).join("") });
      figure.replaceChildren(wholes, ...player(mesh, stepsOf(sent, laid.slice(0, -1), laid.at(-1))));
    };

    const telling = rows.filter(({ sent, refusal }) => sent.length && !refusal);
    const first = telling.find(({ sizes }) => sizes.length > 1) ?? telling[0] ?? rows[0];
    for (const key of keys) fill(selects[key], [[first[key] ?? "", ""]]);
    form.addEventListener("input", show);
    show();
  };

  document.addEventListener("DOMContentLoaded", () => {
    for (const place of document.querySelectorAll(".layout-placement")) placement(place);
    const rows = [...document.querySelectorAll(".tag_layout-table tr[data-plain]")].map(choice);
    if (!rows.length) return;
    for (const place of document.querySelectorAll(".layout-communication")) communication(place, rows);
  });
})();
