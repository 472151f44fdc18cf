// What the theme makes when the page runs gets names, and what scrolls can be reached by keyboard.
function complete() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  for (const each of document.querySelectorAll(".md-code__nav")) each.setAttribute("role", "presentation");
  for (const each of document.querySelectorAll(".md-typeset__scrollwrap, pre > code"))
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
}
complete();
new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
addEventListener("resize", complete);
