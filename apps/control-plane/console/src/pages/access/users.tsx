import { useSignal } from '@preact/signals';

import { here, setQuery } from '../../shell/router';
import { me, readMe } from '../../shell/session';
import { Confirm, Result, useActions, type Actions } from '../../ui/action';
import { Icon } from '../../ui/icons';
import { Dialog, Empty, Facts, Failed, Loading } from '../../ui/parts';
import { useReading } from '../../ui/read';
import { Secret } from '../../ui/secret';
import { Status } from '../../ui/status';
import { exact, milliseconds } from '../../ui/time';
import { invite, readTeams, readUsers, removeUser, setAdmin, setDisabled } from './api';
import { Gone, Head, Side, usePageKeys } from './parts';
import { invitationAddress, stateOfUser, type Team, type User } from './types';

const MOST = 500; // rows that are drawn
const ROLE = (user: User) => (user.isAdmin ? 'Administrator' : 'User');
const LINK_NOTE = 'Send it to the person yourself. It works once, within 7 days, and is shown only now. A new invitation of the same address makes this link invalid.';

interface Link {
  email: string;
  url: string;
}

function teamsOf(user: User, teams: readonly Team[] | null): Team[] {
  return (teams ?? []).filter((team) => team.users.some((one) => one._id === user._id));
}

/** Invites an address and shows the link. Somebody who is a member already gets none. */
async function sendInvitation(actions: Actions, place: string, account: string, email: string, show: (link: Link | null) => void): Promise<boolean> {
  show(null);
  let says = '';
  return actions.run(place, 'invite the user', async () => {
    const invited = await invite(account, email);
    const url = invitationAddress(invited.inviteUrl, location.origin);
    if (url) show({ email, url });
    else says = `${invited.userName} has this address and is a member already.`;
  }, () => says || `${email} is invited. Copy the link now.`, 'list');
}

function Invite({ close, actions, account, show }: { close: () => void; actions: Actions; account: string; show: (link: Link | null) => void }) {
  const send = async (event: Event) => {
    event.preventDefault();
    const email = String(new FormData(event.currentTarget as HTMLFormElement).get('email')).trim();
    if (await sendInvitation(actions, 'invite', account, email, show)) close();
  };
  return (
    <Dialog title="Invite a user" close={close}>
      <form class="fields" onSubmit={(event) => void send(event)}>
        <p>You get a link to send. Whoever opens it chooses a name and a password, or joins with a user of another account.</p>
        <label>E-mail<input name="email" type="email" required autocomplete="off" /></label>
        <div class="action"><button type="submit" class="primary" aria-disabled={actions.busy}>Invite</button><Result actions={actions} at="invite" /></div>
      </form>
    </Dialog>
  );
}

function UserPanel({ user, teams, actions, account, show }: { user: User; teams: readonly Team[] | null; actions: Actions; account: string; show: (link: Link | null) => void }) {
  const removing = useSignal(false);
  const isSelf = user._id === me.value?.id;
  const isPending = user.status === 'pending';
  const name = user.userName;
  const own = async (isDone: Promise<boolean>) => {
    if (await isDone && isSelf) void readMe();
  };
  const changeRole = () => own(actions.run('role', 'change the role', () => setAdmin(account, user._id, !user.isAdmin), user.isAdmin ? `${name} is no administrator any more.` : `${name} is an administrator${isPending ? ' once the invitation is accepted' : ''}.`));
  const disable = (disabled: boolean) => own(actions.run('state', disabled ? 'disable the user' : 'enable the user', () => setDisabled(user._id, disabled), disabled ? `${name} can't sign in any more, and all sessions and keys of ${name} have stopped working.` : `${name} can sign in again.`));
  const remove = async () => {
    const isDone = await actions.run('remove', isPending ? 'withdraw the invitation' : 'remove the user', () => removeUser(account, user._id), isPending ? `The invitation of ${user.email} is withdrawn; its link is invalid.` : `${name} is removed from the account.`, 'list');
    if (isDone) setQuery({ user: '' });
    if (isDone && isSelf) void readMe();
    return isDone;
  };
  return (
    <Side title={name} parameter="user">
      <Facts facts={[['State', <Status value={stateOfUser(user)} />], ['Role', ROLE(user)], ['E-mail', user.email || '–'],
        ['Invited until', isPending && user.expires ? exact(milliseconds(user.expires)) : ''],
        ['Teams', teams === null ? 'not known' : teamsOf(user, teams).length === 0 ? 'none' : <>{teamsOf(user, teams).map((team, index) => <>{index > 0 && ', '}<a href={`/access/teams?team=${encodeURIComponent(team._id)}`}>{team.name}</a></>)}</>]]} />
      {isSelf && <p class="mute small">This is you: what you change here applies to this page at once.</p>}
      <div class="stack">
        <div class="action"><button type="button" aria-disabled={actions.busy} onClick={() => void changeRole()}>{user.isAdmin ? 'Remove administrator role' : 'Make administrator'}</button><Result actions={actions} at="role" /></div>
        {isPending
          ? <div class="action"><button type="button" aria-disabled={actions.busy} onClick={() => void sendInvitation(actions, 'state', account, user.email, show)}>New link</button><Result actions={actions} at="state" /></div>
          : <div class="action"><button type="button" aria-disabled={actions.busy} onClick={() => void disable(user.status !== 'disabled')}>{user.status === 'disabled' ? 'Enable' : 'Disable'}</button><Result actions={actions} at="state" /></div>}
        <div class="action"><button type="button" class="danger" aria-disabled={actions.busy} onClick={() => { actions.clear(); removing.value = true; }}>{isPending ? 'Withdraw…' : 'Remove…'}</button></div>
      </div>
      {removing.value && (
        <Confirm title={isPending ? `Withdraw the invitation of ${user.email}?` : `Remove ${name}?`} verb={isPending ? 'Withdraw' : 'Remove'} typed={isPending ? '' : name} close={() => (removing.value = false)} actions={actions} place="remove" confirm={remove}>
          {isPending ? <p>The link that was sent does not work any more.</p>
            : <p>{name} leaves the account and {teamsOf(user, teams).length} of its teams. Sessions and keys end at once. A user who is in no other account is removed from the installation.</p>}
        </Confirm>
      )}
    </Side>
  );
}

export function UsersPage() {
  const account = me.value!.accountId;
  const { query } = here.value;
  const [wanted, chosen] = [query.get('q') ?? '', query.get('user') ?? ''];
  const users = useReading(account, 'read the users', (signal) => readUsers(account, signal));
  const teams = useReading(account, 'read the teams', readTeams);
  const again = () => {
    users.again();
    teams.again();
  };
  const actions = useActions(again);
  const inviting = useSignal(false);
  const link = useSignal<Link | null>(null);
  const show = (next: Link | null) => (link.value = next);
  const begin = () => {
    actions.clear();
    inviting.value = true;
  };
  usePageKeys(again, [{ keys: '+', text: 'Invite a user', run: begin }, { keys: 'Escape', text: 'Close the panel', run: () => setQuery({ user: '' }) }]);
  const all = users.value ?? [];
  const fitting = all.filter((user) => `${user.userName} ${user.email}`.toLowerCase().includes(wanted.toLowerCase()));
  const one = all.find((user) => user._id === chosen);
  return (
    <div class="page">
      <Head tab="users" count={users.value ? all.length : undefined}><button type="button" onClick={begin}><Icon name="plus" />Invite a user…</button></Head>
      <Result actions={actions} at="list" />
      {link.value && <Secret title={`Link for ${link.value.email}`} text={link.value.url} note={LINK_NOTE} forget={() => show(null)} />}
      {users.failure && <Failed failure={users.failure} retry={users.again} />}
      {teams.failure && <Failed failure={teams.failure} retry={teams.again} />}
      {!users.value && !users.failure && <Loading what="the users" />}
      {all.length > 0 && <div class="row"><label>Find<input value={wanted} placeholder="name or e-mail" onInput={(event) => setQuery({ q: event.currentTarget.value })} /></label></div>}
      {users.value && chosen && !one && <Gone what="user" parameter="user" />}
      {all.length === 1 && <p class="mute">You are alone in this account. <button type="button" class="link" onClick={begin}>Invite somebody</button> by an e-mail address.</p>}
      {users.value && all.length > 0 && fitting.length === 0 && <Empty title="Nothing matches"><p><button type="button" onClick={() => setQuery({ q: '' })}>Clear the filter</button></p></Empty>}
      {fitting.length > 0 && (
        <div class="with-side">
          <div class="scroll" tabIndex={0} role="region" aria-label="Users">
            <table>
              <thead><tr><th scope="col">Name</th><th scope="col">E-mail</th><th scope="col">Role</th><th scope="col">State</th><th scope="col">Teams</th></tr></thead>
              <tbody>
                {fitting.slice(0, MOST).map((user) => (
                  <tr key={user._id} class={user._id === chosen ? 'chosen' : undefined}>
                    <th scope="row"><button type="button" class="link" aria-expanded={user._id === chosen} onClick={() => { actions.clear(); setQuery({ user: user._id === chosen ? '' : user._id }); }}>{user.userName}</button>{user._id === me.value?.id && <span class="tag">you</span>}</th>
                    <td>{user.email || '–'}</td><td>{ROLE(user)}</td><td><Status value={stateOfUser(user)} /></td>
                    <td>{teams.value ? teamsOf(user, teams.value).map((team) => team.name).join(', ') || <span class="mute">none</span> : <span class="mute">not known</span>}</td>
                  </tr>
                ))}
              </tbody>
            </table>
            {fitting.length > MOST && <p class="mute">{fitting.length - MOST} more. Find narrows the list.</p>}
          </div>
          {one && <UserPanel key={one._id} user={one} teams={teams.value} actions={actions} account={account} show={show} />}
        </div>
      )}
      {inviting.value && <Invite close={() => (inviting.value = false)} actions={actions} account={account} show={show} />}
    </div>
  );
}
