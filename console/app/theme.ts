// This script runs before the page is painted, which prevents a flash of the other colours.
let theme: string | null = null;
try {
  theme = localStorage.getItem("tiltyard.theme");
} catch {
  // Without storage, the system's preference applies.
}
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;

export {};
