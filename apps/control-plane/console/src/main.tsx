import { render } from 'preact';

import { openStream } from './data/load';
import { App } from './shell/app';
import { startKeys } from './shell/keys';
import { herePath, startRouter } from './shell/router';
import { askMe, OPEN_PAGES } from './shell/session';
import './style.css';

startRouter();
startKeys();
// On their way while the page is drawn.
if (!OPEN_PAGES.includes(herePath.peek())) {
  void askMe();
  openStream();
}
render(<App />, document.getElementById('app')!);
