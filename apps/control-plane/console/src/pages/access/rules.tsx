import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';

import { here } from '../../shell/router';
import { me } from '../../shell/session';
import { applications } from '../../store/state';
import { Confirm, Result, useActions, type Actions } from '../../ui/action';
import { HelpLink } from '../../ui/help_link';
import { Icon } from '../../ui/icons';
import { Dialog, Empty, Failed, Loading } from '../../ui/parts';
import { useReading } from '../../ui/read';
import { createRule, readRules, readServiceAccounts, readTeams, readUsers, removeRule } from './api';
import { Boxes, Gone, Head, NoAdministrator, piecesOf, Sentence, usePageKeys } from './parts';
import { Tester } from './tester';
import { APPLICATIONS_TYPE, ATTRIBUTES, plain, ruleMistake, TYPES, viewWarning, type Attribute, type Rule, type Team } from './types';

/** Values of an attribute that applications have, to choose from. */
function knownValues(attribute: string): string[] {
  const { columns, length } = applications;
  const column = { NAMESPACE: columns.namespace, RUNTIME: columns.runtime, CLUSTER: columns.cluster }[attribute];
  if (column) return [...new Set(column)].filter(Boolean).sort().slice(0, 200);
  if (attribute !== 'LABEL') return [];
  const labels = new Set<string>();
  for (let row = 0; row < length; ++row) for (const label of columns.labels[row]!) labels.add(label);
  return [...labels].sort().slice(0, 200);
}

function Condition({ index, given, names, set, remove }: { index: number; given: Attribute; names: readonly string[]; set: (next: Attribute) => void; remove: () => void }) {
  const values = useMemo(() => knownValues(given.name), [given.name]);
  const word = ATTRIBUTES[given.name] ?? given.name;
  return (
    <div class="action">
      <select aria-label={`Condition ${index + 1}: attribute`} value={given.name} onChange={(event) => set({ name: event.currentTarget.value, key: null, value: '' })}>{names.map((name) => <option key={name} value={name}>{ATTRIBUTES[name]}</option>)}</select>
      <span>is</span>
      <input class="grow" aria-label={`Condition ${index + 1}: ${word}`} list={`values-${index}`} value={given.value} placeholder={given.name === 'LABEL' ? 'key=value, or a key alone' : word} autocomplete="off" autocapitalize="off" spellcheck={false} onInput={(event) => set({ ...given, value: event.currentTarget.value })} />
      <datalist id={`values-${index}`}>{values.map((value) => <option key={value} value={value} />)}</datalist>
      <button type="button" class="quiet" aria-label={`Remove condition ${index + 1}`} onClick={remove}><Icon name="close" size={12} /></button>
    </div>
  );
}

function Create({ teams, rules, actions, close }: { teams: readonly Team[]; rules: readonly Rule[]; actions: Actions; close: () => void }) {
  const rule = useSignal<Omit<Rule, 'id'>>({ entityType: APPLICATIONS_TYPE, teams: [], tags: [], actions: [], attributes: [] });
  const isSent = useSignal(false);
  const { entityType, attributes } = rule.value;
  const type = TYPES[entityType]!;
  const set = (change: Partial<Rule>) => (rule.value = { ...rule.value, ...change });
  const setCondition = (at: number, next: Attribute | null) => set({ attributes: attributes.flatMap((one, index) => (index !== at ? [one] : next ? [next] : [])) });
  const mistake = ruleMistake(rule.value);
  const warning = viewWarning('create', { id: '', ...rule.value }, rules);
  const send = async (event: Event) => {
    event.preventDefault();
    isSent.value = true;
    if (mistake) return;
    const trimmed = { ...rule.value, attributes: attributes.map((one) => ({ ...one, value: one.value.trim() })) };
    if (await actions.run('create', 'create the rule', () => createRule(trimmed), 'The rule was created. It applies from now on.', 'list')) close();
  };
  return (
    <Dialog title="Create a rule" close={close}>
      <form class="fields" onSubmit={(event) => void send(event)}>
        <label>On<select value={entityType} onChange={(event) => set({ entityType: event.currentTarget.value, actions: [], attributes: [] })}>{Object.entries(TYPES).map(([key, { text }]) => <option key={key} value={key}>{text}</option>)}</select></label>
        <Boxes title="Teams" items={teams.map((team) => ({ value: team._id, text: team.name }))} chosen={rule.value.teams} set={(next) => set({ teams: next })} note="Every user is in the team users." />
        <Boxes title="May" items={type.actions.map((action) => ({ value: action, text: action }))} chosen={rule.value.actions} set={(next) => set({ actions: next })} {...(type.actions.includes('SYNC') && { note: 'SYNC includes REFRESH.' })} />
        <fieldset class="boxes rows">
          <legend>Where</legend>
          {attributes.length === 0 && <p class="mute">Without a condition it applies to all {type.text}.</p>}
          {attributes.map((one, index) => <Condition key={index} index={index} given={one} names={type.attributes} set={(next) => setCondition(index, next)} remove={() => setCondition(index, null)} />)}
          <div><button type="button" onClick={() => set({ attributes: [...attributes, { name: type.attributes[0]!, key: null, value: '' }] })}><Icon name="plus" />Add a condition</button></div>
          <p class="mute small">{entityType === APPLICATIONS_TYPE && 'The namespace is the one that the Application itself is in, the cluster the one that it deploys to. '}Values of the same attribute are alternatives.</p>
        </fieldset>
        {rule.value.teams.length > 0 && rule.value.actions.length > 0 && <p class="verdict run" aria-live="polite"><Sentence rule={{ ...rule.value, attributes: attributes.filter((one) => one.value.trim()) }} teams={teams} /></p>}
        {warning && <p class="verdict warn">{warning}</p>}
        <div class="action"><button type="submit" class="primary" aria-disabled={actions.busy || mistake !== ''}>Create the rule</button>{isSent.value && mistake && <span class="bad" role="alert">{mistake}</span>}<Result actions={actions} at="create" /></div>
      </form>
    </Dialog>
  );
}

function RuleList({ rules, teams, actions }: { rules: readonly Rule[]; teams: readonly Team[] | null; actions: Actions }) {
  const asked = useSignal<Rule | null>(null);
  const chosen = here.value.query.get('rule') ?? '';
  const rule = asked.value;
  const warning = rule ? viewWarning('remove', rule, rules) : '';
  return (
    <>
      {chosen && !rules.some((one) => one.id === chosen) && <Gone what="rule" parameter="rule" />}
      <ul class="lines rules" aria-label="Rules">
        {rules.map((one) => (
          <li key={one.id} class={one.id === chosen ? 'chosen' : undefined} aria-current={one.id === chosen ? 'true' : undefined}>
            <p class="grow"><Sentence rule={one} teams={teams} /></p>
            <button type="button" class="quiet" aria-label={`Remove: ${plain(piecesOf(one, teams))}`} onClick={() => { actions.clear(); asked.value = one; }}>Remove…</button>
          </li>
        ))}
      </ul>
      {rule && (
        <Confirm title="Remove this rule?" verb="Remove" close={() => (asked.value = null)} actions={actions} place="remove"
          confirm={() => actions.run('remove', 'remove the rule', () => removeRule(rule.id), 'The rule is removed. Nobody acts by it any more.', 'list')}>
          <div class="stack"><p><Sentence rule={rule} teams={teams} /></p>{warning && <p class="verdict warn">{warning}</p>}</div>
        </Confirm>
      )}
    </>
  );
}

function AllRules() {
  const account = me.value!.accountId;
  const rules = useReading(account, 'read the rules', readRules);
  const teams = useReading(account, 'read the teams', readTeams);
  const users = useReading(account, 'read the users', (signal) => readUsers(account, signal));
  const serviceAccounts = useReading(account, 'read the service accounts', readServiceAccounts);
  const again = () => [rules, teams, users, serviceAccounts].forEach((reading) => reading.again());
  const actions = useActions(again);
  const creating = useSignal(false);
  const begin = () => {
    actions.clear();
    creating.value = true;
  };
  usePageKeys(again, [{ keys: '+', text: 'Create a rule', run: begin }]);
  return (
    <>
      <Head tab="rules" count={rules.value?.length}><button type="button" onClick={begin}><Icon name="plus" />Create a rule…</button></Head>
      <Result actions={actions} at="list" />
      <Tester users={users.value ?? []} serviceAccounts={serviceAccounts.value ?? []} teams={teams.value} />
      <h2 class="section">Rules</h2>
      {[rules, teams, users, serviceAccounts].map((reading, index) => reading.failure && <Failed key={index} failure={reading.failure} retry={reading.again} />)}
      {!rules.value && !rules.failure && <Loading what="the rules" rows={4} />}
      {rules.value?.length === 0 && (
        <Empty title="No rules yet">
          <p>Without rules, all users see all applications, and only administrators act on them. A rule lets a team do more; the first rule with VIEW hides from everybody else what no rule shows.</p>
          <p><button type="button" onClick={begin}>Create a rule…</button></p>
          <p><HelpLink help="rules teams">What rules can say</HelpLink></p>
        </Empty>
      )}
      {rules.value && rules.value.length > 0 && <RuleList rules={rules.value} teams={teams.value} actions={actions} />}
      {creating.value && <Create teams={teams.value ?? []} rules={rules.value ?? []} actions={actions} close={() => (creating.value = false)} />}
    </>
  );
}

/** Who is no administrator asks for itself. The names of teams are nobody's secret. */
function OwnAccess() {
  const teams = useReading('teams', 'read the teams', readTeams);
  usePageKeys(teams.again);
  return (
    <>
      <Head tab="rules" />
      <Tester users={[]} serviceAccounts={[]} teams={teams.value} />
      <NoAdministrator what="rules"><p>Above, the control plane says what you may do on one application, and by which rule.</p></NoAdministrator>
    </>
  );
}

export function RulesPage() {
  return <div class="page">{me.value!.isAdmin ? <AllRules /> : <OwnAccess />}</div>;
}
