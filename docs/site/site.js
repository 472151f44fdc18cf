// What the theme makes when the page runs gets names, what scrolls can be reached by keyboard, and
// names of metrics break where a word of them ends.
function complete() {
  for (const each of document.querySelectorAll("td code:not(:has(wbr))"))
    if (/_./.test(each.textContent)) each.innerHTML = each.innerHTML.replace(/_(?=.)/g, "_<wbr>");
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  for (const each of document.querySelectorAll(".md-code__nav")) each.setAttribute("role", "presentation");
  for (const each of document.querySelectorAll(".md-typeset__scrollwrap, pre > code"))
    if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
}
complete();
new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
addEventListener("resize", complete);
