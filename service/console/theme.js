// Runs before the page is painted, so that it does not flash in the other colours. It is no
// module for that reason, and shares nothing with main.js but the key and the attribute.
{
  /** @type {string | null} */
  let theme = null;
  try {
    theme = localStorage.getItem("tiltyard.theme");
  } catch {
    // Without storage the system's own preference holds.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
