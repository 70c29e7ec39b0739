/** The list of languages without suggestions, with one of them switched. Pure. */
export function switched(disabled: readonly string[], language: string): string[] {
  return disabled.includes(language)
    ? disabled.filter((name) => name !== language)
    : [...disabled, language].sort((a, b) => a.localeCompare(b));
}
