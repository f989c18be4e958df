// The pages of access: who is in the account, and who may do what.
import { useEffect } from 'preact/hooks';
import type { ComponentType } from 'preact';

import { navigate } from '../../shell/router';
import { me } from '../../shell/session';
import { Empty } from '../../ui/parts';
import { Head, NoAdministrator, TABS, usePageKeys, type Tab } from './parts';
import { RulesPage } from './rules';
import { ServiceAccountsPage } from './service_accounts';
import { TeamsPage } from './teams';
import { TokensPage } from './tokens';
import { UsersPage } from './users';

const PAGES: Record<Tab, ComponentType> = { users: UsersPage, teams: TeamsPage, 'service-accounts': ServiceAccountsPage, tokens: TokensPage, rules: RulesPage };
/** Pages that have something for everybody. */
const OPEN: readonly Tab[] = ['tokens', 'rules'];

function Refused({ tab }: { tab: Tab }) {
  usePageKeys(() => {});
  return <div class="page"><Head tab={tab} /><NoAdministrator what={TABS.find(([key]) => key === tab)![1].toLowerCase()} /></div>;
}

export function AccessPage({ parameters }: { parameters: Record<string, string> }) {
  const isAdmin = me.value?.isAdmin === true;
  const given = parameters.tab;
  useEffect(() => {
    if (!given) navigate(isAdmin ? '/access/users' : '/access/tokens', { replace: true });
  }, [given]);
  const tab = TABS.find(([key]) => key === given)?.[0];
  if (!given) return null;
  if (!tab) return <div class="page"><Empty title="There is no such page"><p><a href="/access/users">Go to the users</a></p></Empty></div>;
  if (!isAdmin && !OPEN.includes(tab)) return <Refused key={tab} tab={tab} />;
  const Page = PAGES[tab];
  return <Page key={tab} />;
}
