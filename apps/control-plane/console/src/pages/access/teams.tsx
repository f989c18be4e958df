import { useSignal } from '@preact/signals';

import { here, setQuery } from '../../shell/router';
import { me } from '../../shell/session';
import { Confirm, Result, useActions, type Actions } from '../../ui/action';
import { Icon } from '../../ui/icons';
import { Dialog, Failed, Loading } from '../../ui/parts';
import { useReading } from '../../ui/read';
import { addToTeam, createTeam, readRules, readTeams, readUsers, removeFromTeam, removeTeam, renameTeam } from './api';
import { Gone, Head, Sentence, Side, usePageKeys } from './parts';
import { isBuiltIn, type Rule, type Team, type User } from './types';

const NAME_RULE = 'Lower-case letters, digits and hyphens, at most 63.';

function Create({ close, actions }: { close: () => void; actions: Actions }) {
  const send = async (event: Event) => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget as HTMLFormElement).get('name')).trim();
    let id = '';
    const isDone = await actions.run('create', 'create the team', async () => { id = (await createTeam(name))._id; }, `Team ${name} was created. Add its members, and a rule that says what it may do.`, 'list');
    if (!isDone) return;
    setQuery({ team: id });
    close();
  };
  return (
    <Dialog title="Create a team" close={close}>
      <form class="fields" onSubmit={(event) => void send(event)}>
        <label>Name<input name="name" required autocomplete="off" autocapitalize="off" spellcheck={false} /><span class="small">{NAME_RULE}</span></label>
        <div class="action"><button type="submit" class="primary" aria-disabled={actions.busy}>Create</button><Result actions={actions} at="create" /></div>
      </form>
    </Dialog>
  );
}

function Members({ team, users, actions }: { team: Team; users: readonly User[]; actions: Actions }) {
  const chosen = useSignal('');
  const others = users.filter((user) => user.status !== 'pending' && !team.users.some((one) => one._id === user._id));
  const canChange = !isBuiltIn(team);
  const add = async (event: Event) => {
    event.preventDefault();
    const user = others.find((one) => one._id === chosen.value);
    if (user && await actions.run('add', 'add the user', () => addToTeam(team._id, user._id), `${user.userName} is in ${team.name}.`)) chosen.value = '';
  };
  return (
    <section class="stack">
      <h3>Members</h3>
      {team.users.length === 0 && <p class="mute">Nobody is in it.</p>}
      <ul class="lines">
        {team.users.map((user) => (
          <li key={user._id}>
            <span class="grow">{user.userName} <span class="mute">{user.email}</span></span>
            {canChange && <button type="button" class="quiet" aria-label={`Remove ${user.userName}`} aria-disabled={actions.busy} onClick={() => void actions.run(user._id, 'take the user out', () => removeFromTeam(team._id, user._id), `${user.userName} is not in ${team.name} any more.`, 'members')}><Icon name="close" size={12} />Remove</button>}
            <Result actions={actions} at={user._id} />
          </li>
        ))}
      </ul>
      <Result actions={actions} at="members" />
      {canChange && (
        <form class="action" onSubmit={(event) => void add(event)}>
          <select aria-label="User to add" value={chosen.value} onChange={(event) => (chosen.value = event.currentTarget.value)}>
            <option value="">{others.length === 0 ? 'All users are in it' : 'Choose a user'}</option>
            {others.map((user) => <option key={user._id} value={user._id}>{user.userName}</option>)}
          </select>
          <button type="submit" aria-disabled={actions.busy || !chosen.value}>Add</button>
          <Result actions={actions} at="add" />
        </form>
      )}
      {team.serviceAccounts.length > 0 && <p>Service accounts: {team.serviceAccounts.map((one, index) => <>{index > 0 && ', '}<a href={`/access/service-accounts?account=${encodeURIComponent(one._id)}`}>{one.userName}</a></>)}</p>}
    </section>
  );
}

function TeamPanel({ team, teams, users, rules, actions }: { team: Team; teams: readonly Team[]; users: readonly User[]; rules: readonly Rule[] | null; actions: Actions }) {
  const removing = useSignal(false);
  const naming = rules?.filter((rule) => rule.teams.includes(team._id)) ?? [];
  const rename = (event: Event) => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget as HTMLFormElement).get('name')).trim();
    if (name !== team.name) void actions.run('rename', 'rename the team', () => renameTeam(team._id, name), `Team ${team.name} is ${name} now. Rules keep it.`);
  };
  const remove = async () => {
    const isDone = await actions.run('remove', 'delete the team', () => removeTeam(team._id), `Team ${team.name} is deleted.`, 'list');
    if (isDone) setQuery({ team: '' });
    return isDone;
  };
  return (
    <Side title={team.name} parameter="team">
      {isBuiltIn(team) && <p class="mute">Built in: it follows the {team.name === 'admins' ? 'administrators' : 'users'} of the account by itself.</p>}
      <Members team={team} users={users} actions={actions} />
      <section class="stack">
        <h3>Rules</h3>
        {rules === null && <p class="mute">Not known.</p>}
        {rules && naming.length === 0 && <p class="mute">No rule names it. <a href="/access/rules">Create one</a></p>}
        <ul class="lines">{naming.map((rule) => <li key={rule.id}><Sentence rule={rule} teams={teams} /></li>)}</ul>
      </section>
      {!isBuiltIn(team) && (
        <div class="stack">
          <form class="action" onSubmit={rename}>
            <input key={team.name} name="name" required defaultValue={team.name} aria-label="Name" autocomplete="off" autocapitalize="off" spellcheck={false} />
            <button type="submit" aria-disabled={actions.busy}>Rename</button>
            <Result actions={actions} at="rename" />
          </form>
          <div class="action"><button type="button" class="danger" aria-disabled={actions.busy} onClick={() => { actions.clear(); removing.value = true; }}>Delete…</button></div>
        </div>
      )}
      {removing.value && (
        <Confirm title={`Delete the team ${team.name}?`} verb="Delete" typed={team.name} close={() => (removing.value = false)} actions={actions} place="remove" confirm={remove}>
          <p>Its {team.users.length + team.serviceAccounts.length} members stay in the account. {rules === null ? 'Rules that name it stay' : `${naming.length} ${naming.length === 1 ? 'rule names' : 'rules name'} it; they stay`} and allow nobody anything through it.</p>
        </Confirm>
      )}
    </Side>
  );
}

export function TeamsPage() {
  const account = me.value!.accountId;
  const chosen = here.value.query.get('team') ?? '';
  const teams = useReading(account, 'read the teams', readTeams);
  const users = useReading(account, 'read the users', (signal) => readUsers(account, signal));
  const rules = useReading(account, 'read the rules', readRules);
  const again = () => [teams, users, rules].forEach((reading) => reading.again());
  const actions = useActions(again);
  const creating = useSignal(false);
  const begin = () => {
    actions.clear();
    creating.value = true;
  };
  usePageKeys(again, [{ keys: '+', text: 'Create a team', run: begin }, { keys: 'Escape', text: 'Close the panel', run: () => setQuery({ team: '' }) }]);
  const all = teams.value ?? [];
  const one = all.find((team) => team._id === chosen);
  return (
    <div class="page">
      <Head tab="teams" count={teams.value ? all.length : undefined}><button type="button" onClick={begin}><Icon name="plus" />Create a team…</button></Head>
      <Result actions={actions} at="list" />
      {[teams, users, rules].map((reading, index) => reading.failure && <Failed key={index} failure={reading.failure} retry={reading.again} />)}
      {!teams.value && !teams.failure && <Loading what="the teams" />}
      {teams.value && chosen && !one && <Gone what="team" parameter="team" />}
      {teams.value && all.every(isBuiltIn) && <p class="mute">There are only the teams that are built in. <button type="button" class="link" onClick={begin}>Create a team</button> to give some users rights that others do not have.</p>}
      {all.length > 0 && (
        <div class="with-side">
          <div class="scroll" tabIndex={0} role="region" aria-label="Teams">
            <table>
              <thead><tr><th scope="col">Team</th><th scope="col">Members</th><th scope="col">Service accounts</th><th scope="col">Rules</th></tr></thead>
              <tbody>
                {all.map((team) => (
                  <tr key={team._id} class={team._id === chosen ? 'chosen' : undefined}>
                    <th scope="row"><button type="button" class="link" aria-expanded={team._id === chosen} onClick={() => { actions.clear(); setQuery({ team: team._id === chosen ? '' : team._id }); }}>{team.name}</button>{isBuiltIn(team) && <span class="tag">built in</span>}</th>
                    <td>{team.users.length}</td><td>{team.serviceAccounts.length}</td>
                    <td>{rules.value ? rules.value.filter((rule) => rule.teams.includes(team._id)).length : <span class="mute">not known</span>}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {one && <TeamPanel key={one._id} team={one} teams={all} users={users.value ?? []} rules={rules.value} actions={actions} />}
        </div>
      )}
      {creating.value && <Create close={() => (creating.value = false)} actions={actions} />}
    </div>
  );
}
