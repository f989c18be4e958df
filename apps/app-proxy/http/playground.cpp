#include "app-proxy/http/playground.hpp"

namespace gitops::app_proxy {
namespace {

constexpr const char* kPage = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>app-proxy</title>
<style>body{font:14px sans-serif;margin:1em}textarea,pre{width:100%;box-sizing:border-box;font:13px monospace}
textarea{height:14em}pre{background:#f4f4f4;padding:.5em;white-space:pre-wrap}</style></head>
<body><h1>app-proxy</h1>
<p><label>Token <input id="token" type="password" size="60" autocomplete="off"></label></p>
<p><label>Query<textarea id="query">{ versionInfo { version platformHost platformVersion } }</textarea></label></p>
<p><label>Variables<textarea id="variables" style="height:4em">{}</textarea></label></p>
<p><button id="run">Run</button></p><pre id="answer"></pre>
<script>
document.getElementById('run').addEventListener('click', async () => {
  const value = id => document.getElementById(id).value;
  const show = text => { document.getElementById('answer').textContent = text; };
  try {
    const headers = {'Content-Type': 'application/json'};
    if (value('token')) headers.Authorization = value('token');
    const body = JSON.stringify({query: value('query'), variables: JSON.parse(value('variables') || '{}')});
    const answer = await fetch(location.pathname, {method: 'POST', headers, body});
    const text = await answer.text();
    try { show(JSON.stringify(JSON.parse(text), null, 2)); } catch { show(text); }
  } catch (error) { show(String(error)); }
});
</script></body></html>
)html";

}  // namespace

http::Response playground_page() {
  return {.status = 200,
          .headers = {{"Content-Type", "text/html; charset=utf-8"},
                      {"Cache-Control", "no-store"},
                      {"Content-Security-Policy",
                       "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; "
                       "script-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"},
                      {"Referrer-Policy", "no-referrer"}},
          .body = kPage};
}

}  // namespace gitops::app_proxy
