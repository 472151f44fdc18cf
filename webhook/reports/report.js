"use strict";
(() => {
  const one = (selector) => document.querySelector(selector);
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const root = document.documentElement;
  const search = one("#search");
  const help = one("#help");
  const folders = all(".folder").map((element) => ({
    element,
    name: element.dataset.folder,
    files: all(".file", element).map((file) => ({
      element: file,
      findings: all(".finding", file).map((finding) => ({
        element: finding,
        status: finding.dataset.status,
        words: `${file.dataset.path} ${finding.firstElementChild.textContent} ${
          finding.querySelector("dl")?.textContent ?? ""
        }`.toLowerCase(),
      })),
    })),
  }));
  const rules = all(".rule").map((element) => ({
    element,
    links: all("li", element).map((link) => ({ element: link, anchor: link.dataset.finding })),
  }));
  const state = { words: [], statuses: new Set(), folder: "", view: "folders" };

  const isWanted = (finding) =>
    (state.statuses.size === 0 || state.statuses.has(finding.status)) &&
    state.words.every((word) => finding.words.includes(word));
  const isInside = (name) =>
    state.folder === "" || name === state.folder || name.startsWith(`${state.folder}/`);

  function show() {
    let found = 0;
    let total = 0;
    const wanted = new Set();
    for (const folder of folders) {
      let inFolder = 0;
      for (const file of folder.files) {
        let inFile = 0;
        for (const finding of file.findings) {
          const fits = isInside(folder.name) && isWanted(finding);
          finding.element.hidden = !fits;
          inFile += fits;
          total += 1;
          if (fits) wanted.add(finding.element.id);
        }
        file.element.hidden = inFile === 0;
        inFolder += inFile;
      }
      folder.element.hidden = inFolder === 0;
      found += inFolder;
    }
    for (const rule of rules) {
      let inRule = 0;
      for (const link of rule.links) {
        const fits = wanted.has(link.anchor);
        link.element.hidden = !fits;
        inRule += fits;
      }
      rule.element.hidden = inRule === 0;
    }
    const byRule = state.view === "rules";
    one("#folders").hidden = byRule;
    one("#rules").hidden = !byRule;
    one("#folder-list").hidden = folders.length < 2;
    const isEmpty = byRule ? rules.every((rule) => rule.element.hidden) : found === 0;
    one("#nothing").hidden = !isEmpty;
    if (isEmpty) one("#folders").hidden = one("#rules").hidden = true;
    one("#nothing").textContent = total === 0 ? "Nothing was found." : "Nothing fits what you look for.";
    one(".tools").hidden = total === 0;
    one("#shown").textContent = found === total ? "" : `${found} of ${total} shown.`;
    press("[data-view]", (button) => button.dataset.view === state.view);
    press(".filter", (button) => state.statuses.has(button.dataset.status));
    press("#folder-list button", (button) => button.dataset.folder === state.folder);
  }

  function press(selector, isPressed) {
    for (const button of all(selector)) button.setAttribute("aria-pressed", String(isPressed(button)));
  }

  function toggleStatus(status) {
    if (!state.statuses.delete(status)) state.statuses.add(status);
    show();
  }

  function view(name) {
    state.view = name;
    show();
  }

  function clear() {
    search.value = "";
    state.words = [];
    state.statuses.clear();
    state.folder = "";
    show();
  }

  function unfold() {
    const button = one("#unfold");
    const open = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(open));
    for (const part of all(".finding, .changes, .about")) part.open = open;
  }

  function step(by) {
    const steps =
      state.view === "rules"
        ? all(".rule:not([hidden]) li:not([hidden]) a")
        : all(".folder:not([hidden]) .file:not([hidden]) .finding:not([hidden]) > summary");
    const at = steps.indexOf(document.activeElement);
    const next = steps[at < 0 ? (by > 0 ? 0 : steps.length - 1) : at + by];
    if (!next) return;
    const file = next.closest(".file");
    if (file) file.open = true;
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }

  function visit(anchor) {
    const finding = /^#f\d+$/.test(anchor) ? one(anchor) : null;
    if (!finding) return;
    if (finding.hidden) clear();
    view("folders");
    finding.closest(".file").open = true;
    finding.open = true;
    finding.firstElementChild.focus();
    finding.scrollIntoView({ block: "center" });
  }

  const isDark = () =>
    root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;

  function nameTheme() {
    one("#theme").textContent = isDark() ? "Light" : "Dark";
  }

  function toggleTheme() {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
    try {
      localStorage.setItem("gpu-webhook-theme", root.dataset.theme);
    } catch {} // a page from a file may have no storage
  }

  try {
    const theme = localStorage.getItem("gpu-webhook-theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch {}
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
  nameTheme();

  search.addEventListener("input", () => {
    state.words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    show();
  });
  one("#theme").addEventListener("click", toggleTheme);
  one("#keys").addEventListener("click", () => help.showModal());
  one("#unfold").addEventListener("click", unfold);
  for (const button of all(".filter"))
    button.addEventListener("click", () => toggleStatus(button.dataset.status));
  for (const button of all("[data-view]"))
    button.addEventListener("click", () => view(button.dataset.view));
  for (const button of all("#folder-list button"))
    button.addEventListener("click", () => {
      state.folder = button.dataset.folder;
      show();
    });
  one("#folders").addEventListener("click", async (event) => {
    const button = event.target.closest(".command button");
    if (!button) return;
    const code = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code); // no clipboard: Ctrl-C copies it
    }
  });
  one("#rules").addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    event.preventDefault();
    history.replaceState(null, "", link.hash);
    visit(link.hash);
  });
  addEventListener("hashchange", () => visit(location.hash));

  const keys = {
    "/": () => search.focus(),
    j: () => step(1),
    k: () => step(-1),
    f: () => view("folders"),
    r: () => view("rules"),
    e: unfold,
    t: toggleTheme,
    "?": () => help.showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.key === "Escape") {
      clear();
      search.blur();
      return;
    }
    if (event.target === search) return;
    const filter = all(".filter")[Number(event.key) - 1];
    const act = keys[event.key] ?? (filter && (() => toggleStatus(filter.dataset.status)));
    if (!act) return;
    event.preventDefault();
    act();
  });

  show();
  // After the browser itself has moved there, which would take the focus away.
  addEventListener("load", () => setTimeout(() => visit(location.hash)));
})();
