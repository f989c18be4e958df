// When runtimes were heard of, and which of them are silent. Pure.

/** The program calls a runtime unavailable after this time without a request of it, in milliseconds. */
export const SILENT_AFTER = 5 * 60_000;

interface Contact {
  seenAt: number; // by the server's clock
  heardAt: number; // when this page learned of it, by its own clock
  isSilent: boolean; // as the server said
}

export class RuntimeContacts {
  readonly #all = new Map<string, Contact>();

  /** Takes a whole reading. A runtime that has never reported is not silent: there is nothing of it that could be old. */
  read(runtimes: readonly { name: string; seenAt: number; available: boolean }[], now: number): void {
    const names = new Set(runtimes.map((one) => one.name));
    for (const name of this.#all.keys()) if (!names.has(name)) this.#all.delete(name);
    for (const { name, seenAt, available } of runtimes) {
      if (seenAt === 0) continue;
      const old = this.#all.get(name);
      if (old && old.seenAt > seenAt) {
        // The stream was faster, or the server's clock was set back; then contacts have times that are known already.
        if (available) old.heardAt = now;
        continue;
      }
      const heardAt = old && old.seenAt === seenAt ? old.heardAt : now;
      this.#all.set(name, { seenAt, heardAt, isSilent: !available });
    }
  }
  /** Takes a row of the stream. */
  hear(name: string, seenAt: number, now: number): void {
    const old = this.#all.get(name);
    if (seenAt > (old?.seenAt ?? 0)) this.#all.set(name, { seenAt, heardAt: now, isSilent: false });
  }
  /** Starts the time of silence of each runtime again: nothing could be heard of them meanwhile. */
  countAnew(now: number): void {
    for (const contact of this.#all.values()) contact.heardAt = now;
  }
  /** Returns the silent ones and since when. The clocks of page and server may differ, so that the page counts from when
   * it heard; and only while the stream lives, since without it silence says nothing about the runtimes. */
  silent(now: number, isLive: boolean): Map<string, number> {
    const found = new Map<string, number>();
    for (const [name, { seenAt, heardAt, isSilent }] of this.#all) {
      if (isSilent || (isLive && now - heardAt > SILENT_AFTER)) found.set(name, seenAt);
    }
    return found;
  }
}
