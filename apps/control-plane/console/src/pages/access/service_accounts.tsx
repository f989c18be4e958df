import { useSignal } from '@preact/signals';

import { here, setQuery } from '../../shell/router';
import { Confirm, Result, useActions, type Actions } from '../../ui/action';
import { Icon } from '../../ui/icons';
import { Dialog, Empty, Facts, Failed, Loading } from '../../ui/parts';
import { useReading } from '../../ui/read';
import { Secret } from '../../ui/secret';
import { Status } from '../../ui/status';
import { Age } from '../../ui/time';
import { changeServiceAccount, createServiceAccount, readKeys, readServiceAccounts, readTeams, removeServiceAccount } from './api';
import { CreateKey, KEY_NOTE, Keys, titleOf, type NewKey } from './keys';
import { Boxes, Gone, Head, Side, usePageKeys } from './parts';
import type { ServiceAccount, Team } from './types';

const isAdmin = (account: ServiceAccount) => account.roles.includes('Admin');
const teamItems = (teams: readonly Team[]) => teams.map((team) => ({ value: team._id, text: team.name }));
const namesOf = (account: ServiceAccount, teams: readonly Team[] | null) =>
  (teams === null ? 'not known' : account.teams.map(({ _id }) => teams.find((team) => team._id === _id)?.name ?? _id).join(', ') || 'none');
const NO_TEAM = 'Without a team no rule applies to it, so it sees what all users see and may do nothing.';

function Create({ teams, close, actions }: { teams: readonly Team[]; close: () => void; actions: Actions }) {
  const chosen = useSignal<string[]>([]);
  const admin = useSignal(false);
  const send = async (event: Event) => {
    event.preventDefault();
    const userName = String(new FormData(event.currentTarget as HTMLFormElement).get('name')).trim();
    let id = '';
    const isDone = await actions.run('create', 'create the service account',
      async () => { id = (await createServiceAccount({ userName, teamIds: chosen.value, assignAdminRole: admin.value }))._id; }, `Service account ${userName} was created. Give it a key.`, 'list');
    if (!isDone) return;
    setQuery({ account: id });
    close();
  };
  return (
    <Dialog title="Create a service account" close={close}>
      <form class="fields" onSubmit={(event) => void send(event)}>
        <label>Name<input name="name" required maxLength={128} autocomplete="off" autocapitalize="off" spellcheck={false} /></label>
        <Boxes title="Teams" items={teamItems(teams)} chosen={chosen.value} set={(next) => (chosen.value = next)} note={NO_TEAM} />
        <label class="check"><input type="checkbox" checked={admin.value} onChange={(event) => (admin.value = event.currentTarget.checked)} />It administers the account</label>
        <div class="action"><button type="submit" class="primary" aria-disabled={actions.busy}>Create</button><Result actions={actions} at="create" /></div>
      </form>
    </Dialog>
  );
}

function AccountKeys({ account, actions }: { account: ServiceAccount; actions: Actions }) {
  const keys = useReading(account._id, 'read the keys', (signal) => readKeys(account._id, signal));
  const creating = useSignal(false);
  const made = useSignal<NewKey | null>(null);
  const show = (key: NewKey | null) => (made.value = key);
  const own: Actions = { ...actions, run: async (...given) => {
    const isDone = await actions.run(...given);
    keys.again();
    return isDone;
  } };
  return (
    <section class="stack">
      <h3>Keys</h3>
      <Result actions={actions} at="keys" />
      {made.value && <Secret title={titleOf(account._id, made.value.name)} text={made.value.text} note={KEY_NOTE} forget={() => show(null)} />}
      {keys.failure && <Failed failure={keys.failure} retry={keys.again} />}
      {!keys.value && !keys.failure && <Loading what="the keys" rows={2} />}
      {keys.value?.length === 0 && <p class="mute">It has no keys, so no program can act as it.</p>}
      {keys.value && keys.value.length > 0 && <Keys isNarrow keys={keys.value} owner={account._id} actions={own} revoked={(key) => { if (made.value?.text.startsWith(`${key._id}.`)) show(null); }} />}
      <div><button type="button" onClick={() => { actions.clear(); creating.value = true; }}><Icon name="plus" />Create a key…</button></div>
      {creating.value && <CreateKey owner={account._id} title={`Create a key of ${account.userName}`} close={() => (creating.value = false)} actions={own} show={show} />}
    </section>
  );
}

function AccountPanel({ account, teams, actions }: { account: ServiceAccount; teams: readonly Team[] | null; actions: Actions }) {
  const removing = useSignal(false);
  const chosen = useSignal(account.teams.map(({ _id }) => _id));
  const name = account.userName;
  const before = account.teams.map(({ _id }) => _id);
  const isChanged = chosen.value.length !== before.length || chosen.value.some((id) => !before.includes(id));
  const values = { userName: name, teamIds: before, assignAdminRole: isAdmin(account) };
  const remove = async () => {
    const isDone = await actions.run('remove', 'delete the service account', () => removeServiceAccount(account._id), `Service account ${name} is deleted with its keys.`, 'list');
    if (isDone) setQuery({ account: '' });
    return isDone;
  };
  return (
    <Side title={name} parameter="account">
      <Facts facts={[['State', <Status value={account.enabled ? 'Active' : 'Disabled'} />], ['Role', isAdmin(account) ? 'Administrator' : 'User'], ['Created', <Age at={account.created} ago />]]} />
      <div class="stack">
        <div class="action">
          <button type="button" aria-disabled={actions.busy} onClick={() => void actions.run('state', 'change the service account', () => changeServiceAccount(account._id, { enabled: !account.enabled }), account.enabled ? `No key of ${name} works now.` : `The keys of ${name} work again.`)}>{account.enabled ? 'Disable' : 'Enable'}</button>
          <Result actions={actions} at="state" />
        </div>
        <div class="action">
          <button type="button" aria-disabled={actions.busy} onClick={() => void actions.run('role', 'change the role', () => changeServiceAccount(account._id, { ...values, assignAdminRole: !isAdmin(account) }), isAdmin(account) ? `${name} is no administrator any more.` : `${name} is an administrator.`)}>{isAdmin(account) ? 'Remove administrator role' : 'Make administrator'}</button>
          <Result actions={actions} at="role" />
        </div>
      </div>
      {teams && (
        <section class="stack">
          <Boxes title="Teams" items={teamItems(teams)} chosen={chosen.value} set={(next) => (chosen.value = next)} {...(chosen.value.length === 0 && { note: NO_TEAM })} />
          <div class="action">
            <button type="button" aria-disabled={actions.busy || !isChanged} onClick={() => isChanged && void actions.run('teams', 'change the teams', () => changeServiceAccount(account._id, { ...values, teamIds: chosen.value }), `The teams of ${name} are changed.`)}>Save the teams</button>
            <Result actions={actions} at="teams" />
          </div>
        </section>
      )}
      <AccountKeys account={account} actions={actions} />
      <div class="stack"><div class="action"><button type="button" class="danger" aria-disabled={actions.busy} onClick={() => { actions.clear(); removing.value = true; }}>Delete…</button></div></div>
      {removing.value && (
        <Confirm title={`Delete the service account ${name}?`} verb="Delete" typed={name} close={() => (removing.value = false)} actions={actions} place="remove" confirm={remove}>
          <p>All its keys stop working at once, and do not come back.</p>
        </Confirm>
      )}
    </Side>
  );
}

export function ServiceAccountsPage() {
  const chosen = here.value.query.get('account') ?? '';
  const accounts = useReading('accounts', 'read the service accounts', readServiceAccounts);
  const teams = useReading('teams', 'read the teams', readTeams);
  const again = () => {
    accounts.again();
    teams.again();
  };
  const actions = useActions(again);
  const creating = useSignal(false);
  const begin = () => {
    actions.clear();
    creating.value = true;
  };
  usePageKeys(again, [{ keys: '+', text: 'Create a service account', run: begin }, { keys: 'Escape', text: 'Close the panel', run: () => setQuery({ account: '' }) }]);
  const all = accounts.value ?? [];
  const one = all.find((account) => account._id === chosen);
  return (
    <div class="page">
      <Head tab="service-accounts" count={accounts.value ? all.length : undefined}><button type="button" onClick={begin}><Icon name="plus" />Create a service account…</button></Head>
      <Result actions={actions} at="list" />
      {[accounts, teams].map((reading, index) => reading.failure && <Failed key={index} failure={reading.failure} retry={reading.again} />)}
      {!accounts.value && !accounts.failure && <Loading what="the service accounts" rows={3} />}
      {accounts.value && chosen && !one && <Gone what="service account" parameter="account" />}
      {accounts.value && all.length === 0 && (
        <Empty title="No service accounts yet">
          <p>A service account is a caller for programs, such as Terraform or a pipeline. It has keys, but no password and no session, and it stays when people leave.</p>
          <p><button type="button" onClick={begin}>Create a service account…</button></p>
        </Empty>
      )}
      {all.length > 0 && (
        <div class="with-side wide-side">
          <div class="scroll" tabIndex={0} role="region" aria-label="Service accounts">
            <table>
              <thead><tr><th scope="col">Name</th><th scope="col">Role</th><th scope="col">State</th><th scope="col">Teams</th><th scope="col">Created</th></tr></thead>
              <tbody>
                {all.map((account) => (
                  <tr key={account._id} class={account._id === chosen ? 'chosen' : undefined}>
                    <th scope="row"><button type="button" class="link" aria-expanded={account._id === chosen} onClick={() => { actions.clear(); setQuery({ account: account._id === chosen ? '' : account._id }); }}>{account.userName}</button></th>
                    <td>{isAdmin(account) ? 'Administrator' : 'User'}</td><td><Status value={account.enabled ? 'Active' : 'Disabled'} /></td><td>{namesOf(account, teams.value)}</td><td><Age at={account.created} ago /></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {one && <AccountPanel key={one._id} account={one} teams={teams.value} actions={actions} />}
        </div>
      )}
      {creating.value && <Create teams={teams.value ?? []} close={() => (creating.value = false)} actions={actions} />}
    </div>
  );
}
