/** The part of the section `lacuna` that is the server's: it reports what it does not know. Pure. */

const OF_THE_EXTENSION = new Set(['server', 'review', 'trace']);

export function serverSettings(section: unknown): unknown {
  if (section === null || typeof section !== 'object' || Array.isArray(section)) {
    return section;
  }
  return Object.fromEntries(Object.entries(section).filter(([key]) => !OF_THE_EXTENSION.has(key)));
}
