// Who may do what on one application, and by which rule.
import { useMemo } from 'preact/hooks';
import type { ComponentChildren } from 'preact';

import { here, setQuery } from '../../shell/router';
import { me } from '../../shell/session';
import { applications, readings } from '../../store/state';
import { Icon } from '../../ui/icons';
import { Empty, Failed, Loading } from '../../ui/parts';
import { useReading, type Reading } from '../../ui/read';
import { readAccess, readUsersWithAccess, type Entity } from './api';
import { Sentence } from './parts';
import { applicationOf, applicationText, APPLICATIONS_TYPE, reasonOf, TYPES, type Decision, type ServiceAccount, type Team, type User } from './types';

const SUGGESTED = 50;
const ACTIONS = TYPES[APPLICATIONS_TYPE]!.actions;

/** Names of applications that contain a text, for the field. */
function useSuggestions(text: string): string[] {
  void readings.value;
  return useMemo(() => {
    const wanted = text.toLowerCase();
    const found: string[] = [];
    for (let row = 0; row < applications.length && found.length < SUGGESTED; ++row) {
      if (applications.isGone(row)) continue;
      const name = applicationText(applications.at(row));
      if (name.toLowerCase().includes(wanted)) found.push(name);
    }
    return found;
  }, [text, readings.value]);
}

function May({ allowed }: { allowed: boolean }) {
  return <span class={`state ${allowed ? 'ok' : 'mute'}`}><Icon name={allowed ? 'tick' : 'bar'} />{allowed ? 'may' : 'may not'}</span>;
}

function Why({ decision, isSelf, teams }: { decision: Decision; isSelf: boolean; teams: readonly Team[] | null }) {
  return (
    <>
      <p>{reasonOf(decision, isSelf)}</p>
      {decision.rule && <p><Sentence rule={decision.rule} teams={teams} />{me.value?.isAdmin && <> <a href={`/access/rules?rule=${encodeURIComponent(decision.rule.id)}`}>Show the rule</a></>}</p>}
    </>
  );
}

function Decisions({ reading, head, row, children }: { reading: Reading<Decision[]>; head: string; row: (one: Decision) => { key: string; name: string; why: ComponentChildren }; children?: ComponentChildren }) {
  if (reading.failure && reading.failure.status === 404) return <Empty title="There is no such application"><p>{reading.failure.message}. It was deleted, its name is written differently, or a rule keeps you from seeing it.</p></Empty>;
  if (reading.failure) return <Failed failure={reading.failure} retry={reading.again} />;
  if (!reading.value) return <Loading what="who may do what" rows={4} />;
  if (reading.value.length === 0) return <>{children}</>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Decisions">
      <table>
        <thead><tr><th scope="col">{head}</th><th scope="col">Answer</th><th scope="col">Why</th></tr></thead>
        <tbody>
          {reading.value.map((one) => {
            const { key, name, why } = row(one);
            return <tr key={key}><th scope="row">{head === 'Action' ? <code>{name}</code> : name}</th><td><May allowed={one.allowed} /></td><td class="why">{why}</td></tr>;
          })}
        </tbody>
      </table>
    </div>
  );
}

/** What one person may do; without an id the caller. */
function OfPerson({ entity, user, teams }: { entity: Entity; user: string; teams: readonly Team[] | null }) {
  const reading = useReading(`${applicationText(entity)} ${user}`, 'read who may do what', (signal) => readAccess(entity, user, signal));
  const isSelf = user === '' || user === me.value?.id;
  return <Decisions reading={reading} head="Action" row={(one) => ({ key: one.action, name: one.action, why: <Why decision={one} isSelf={isSelf} teams={teams} /> })} />;
}

/** Who may perform one action. */
function OfAction({ entity, action, teams }: { entity: Entity; action: string; teams: readonly Team[] | null }) {
  const reading = useReading(`${applicationText(entity)} ${action}`, 'read who may do it', (signal) => readUsersWithAccess(entity, action, signal));
  return (
    <>
      <Decisions reading={reading} head="Who" row={(one) => ({ key: one.user.id, name: one.user.name, why: <Why decision={one} isSelf={one.user.id === me.value?.id} teams={teams} /> })}>
        <p>Nobody may {action} it.</p>
      </Decisions>
      {(reading.value?.length ?? 0) > 0 && <p class="mute small">{reading.value!.length >= 1_000 ? 'These are the first 1,000; there may be more.' : `Nobody else may ${action} it. Users who are disabled are left out.`}</p>}
    </>
  );
}

export function Tester({ users, serviceAccounts, teams }: { users: readonly User[]; serviceAccounts: readonly ServiceAccount[]; teams: readonly Team[] | null }) {
  const { query } = here.value;
  const isAdmin = me.value!.isAdmin;
  const at = { runtime: query.get('runtime') ?? '', namespace: query.get('namespace') ?? '', name: query.get('name') ?? '' };
  const isChosen = at.runtime !== '' && at.namespace !== '' && at.name !== '';
  const typed = query.get('app') ?? (isChosen ? applicationText(at) : '');
  const suggestions = useSuggestions(typed);
  const action = ACTIONS.includes(query.get('action') ?? '') ? query.get('action')! : 'SYNC';
  const user = isAdmin ? query.get('who') ?? '' : '';
  const entity: Entity = { entityType: APPLICATIONS_TYPE, ...at };
  // What is typed stays in the address until it names an application.
  const type = (text: string) => {
    const found = applicationOf(text);
    setQuery(found ? { ...found, app: '' } : { runtime: '', namespace: '', name: '', app: text });
  };
  return (
    <section class="tester" aria-labelledby="tester">
      <h2 id="tester">{isAdmin ? 'Who may do what on this application?' : 'What may you do on this application?'}</h2>
      <form class="row" onSubmit={(event) => event.preventDefault()}>
        <label class="grow">Application<input class="grow" list="tester-applications" value={typed} placeholder="runtime/namespace/name" autocomplete="off" autocapitalize="off" spellcheck={false} onInput={(event) => type(event.currentTarget.value)} /></label>
        <datalist id="tester-applications">{suggestions.map((one) => <option key={one} value={one} />)}</datalist>
        {isAdmin && (
          <label>Who<select value={user} onChange={(event) => setQuery({ who: event.currentTarget.value })}>
            <option value="">everybody</option>
            {users.filter((one) => one.status !== 'pending').map((one) => <option key={one._id} value={one._id}>{one.userName}</option>)}
            {serviceAccounts.map((one) => <option key={one._id} value={one._id}>service account {one.userName}</option>)}
          </select></label>
        )}
        {isAdmin && !user && <label>Action<select value={action} onChange={(event) => setQuery({ action: event.currentTarget.value })}>{ACTIONS.map((one) => <option key={one}>{one}</option>)}</select></label>}
      </form>
      {!isChosen && <p class="mute">{typed ? 'This names no application yet: runtime, namespace and name, with slashes between them.' : 'Name an application, and the control plane answers by which rule somebody may act on it.'}</p>}
      {isChosen && (isAdmin && !user ? <OfAction entity={entity} action={action} teams={teams} /> : <OfPerson entity={entity} user={user} teams={teams} />)}
      {isChosen && <p class="small"><a href={`/applications/${[at.runtime, at.namespace, at.name].map(encodeURIComponent).join('/')}`}>To the application</a></p>}
    </section>
  );
}
