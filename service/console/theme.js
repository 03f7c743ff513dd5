// This script runs before the page is painted, which prevents a flash of the other colours. Thus it is not a module and
// shares nothing with main.js but the key and the attribute.
{
  /** @type {string | null} */
  let theme = null;
  try {
    theme = localStorage.getItem("tiltyard.theme");
  } catch {
    // Without storage, the system's preference applies.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
