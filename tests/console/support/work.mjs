// Counts work instead of time: how often functions of the page ran, which a busy machine does not change.

/** Returns a function that tells how often each function ran since it was called last. Functions are named by a piece of text
 * that their source has: the smallest one around it is meant. */
export async function countCalls(page, names) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Debugger.enable');
  await cdp.send('Profiler.enable');
  await cdp.send('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const sources = new Map();
  return async () => {
    const { result } = await cdp.send('Profiler.takePreciseCoverage');
    const counts = Object.fromEntries(Object.keys(names).map((name) => [name, 0]));
    const sizes = {};
    for (const { scriptId, url, functions } of result) {
      if (!url.includes('/assets/')) continue;
      if (!sources.has(scriptId)) sources.set(scriptId, (await cdp.send('Debugger.getScriptSource', { scriptId })).scriptSource);
      for (const { ranges: [{ startOffset, endOffset, count }] } of functions) {
        const text = sources.get(scriptId).slice(startOffset, endOffset);
        for (const [name, piece] of Object.entries(names)) {
          if (!text.includes(piece) || text.length >= (sizes[name] ?? Infinity)) continue;
          sizes[name] = text.length;
          counts[name] = count;
        }
      }
    }
    return counts;
  };
}
