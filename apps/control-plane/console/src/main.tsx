import { render } from 'preact';

import { App } from './shell/app';
import { startKeys } from './shell/keys';
import { startRouter } from './shell/router';
import './style.css';

startRouter();
startKeys();
render(<App />, document.getElementById('app')!);
