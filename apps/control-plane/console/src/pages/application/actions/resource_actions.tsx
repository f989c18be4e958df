// Actions on one object of an Application: those that Argo CD has for its kind, those of Rollouts, and its deletion.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import { changeRuntime, readRuntime } from '../../../data/runtime';
import { DELETE_RESOURCE, RESOURCE_ACTIONS, ROLLOUT_ACTION, RUN_ACTION } from '../../../data/runtime_documents';
import { addKeys } from '../../../shell/keys';
import { Result, useActions } from '../../../ui/action';
import { Failed, Loading } from '../../../ui/parts';
import { useReading } from '../../../ui/read';
import { pathOf, type Name } from '../links';
import { resourceId, type Resource } from '../types';
import { isRollout, rightOf, ROLLOUT_VERBS } from './operations';
import { Guarded, Panel } from './panel';
import { PLACE } from './panels';
import { useRights } from './rights';

interface Verb {
  key: string;
  text: string;
  says: string;
  whyNot: string;
  isDeletion?: boolean;
  act: () => Promise<unknown>;
}

const spoken = (action: string): string => `${action.charAt(0).toUpperCase()}${action.slice(1).replaceAll('-', ' ')}`;

export function ResourceActions({ name, one, after }: { name: Name; one: Resource; after: () => void }) {
  const actions = useActions(after);
  const whyNot = useRights(name);
  const [openKey, open] = useState('');
  const [isAsked, ask] = useState(false); // the runtime is asked when somebody wants to know
  const object = { application: name.name, appNamespace: name.namespace, group: one.group ?? '', version: one.version ?? '', kind: one.kind, namespace: one.namespace ?? '', resourceName: one.name };
  const isOfRollouts = isRollout(one);
  const tried = `read the actions of ${one.kind} ${one.name}`;
  const reading = useReading(`actions ${pathOf(name)} ${resourceId(one)} ${isAsked}`, tried, async (signal) => (isAsked
    ? (await readRuntime<{ resourceActions: { name: string; disabled: boolean }[] }>(tried, name.runtime, RESOURCE_ACTIONS, object, signal)).resourceActions : []));
  const verbs: Verb[] = [
    ...(isOfRollouts ? ROLLOUT_VERBS.map(({ action, text, right, says }) => ({ key: action, text, says, whyNot: whyNot(right),
      act: () => changeRuntime(name.runtime, ROLLOUT_ACTION, { application: name.name, appNamespace: name.namespace, namespace: one.namespace ?? '', name: one.name, action }) })) : []),
    ...(reading.value ?? []).map(({ name: action, disabled }) => ({ key: action, text: spoken(action), says: `Runs Argo CD's action ${action} on ${one.kind} ${one.name}.`,
      whyNot: whyNot(rightOf(one, action)) || (disabled ? 'Argo CD does not offer it in the state in which the object is.' : ''), act: () => changeRuntime(name.runtime, RUN_ACTION, { ...object, action }) })),
    { key: 'delete', text: 'Delete', isDeletion: true, whyNot: whyNot('DELETE_RESOURCE'), says: `Deletes ${one.kind} ${one.name} in the cluster. If Git still has it, the next sync makes it anew.`,
      act: () => changeRuntime(name.runtime, DELETE_RESOURCE, object) },
  ];
  const shown = useRef({ verbs, open });
  shown.current = { verbs, open };
  useLayoutEffect(() => {
    if (!isOfRollouts) return undefined;
    return addKeys('Rollout', [['p', 'PROMOTE'], ['P', 'PROMOTE_FULL']].map(([keys, action]) => ({ keys: keys!, text: `${ROLLOUT_VERBS.find((verb) => verb.action === action)!.text}…`,
      run: () => { if (!shown.current.verbs.find((verb) => verb.key === action)?.whyNot) shown.current.open(action!); } })));
  }, [isOfRollouts]);
  const chosen = verbs.find((verb) => verb.key === openKey);
  return (
    <section class="stack" aria-label="Actions of the resource">
      <h3>Actions</h3>
      {reading.failure && <Failed failure={reading.failure} retry={reading.again} />}
      {isAsked && !reading.value && !reading.failure && <Loading what="the actions" rows={1} />}
      {isAsked && reading.value?.length === 0 && <p class="mute small">Argo CD has no actions for this kind.</p>}
      <div class="actions">
        {verbs.map((verb) => <span key={verb.key}><Guarded text={`${verb.text}…`} danger={verb.isDeletion ?? false} whyNot={verb.whyNot} open={() => { actions.clear(); open(verb.key); }} /></span>)}
        {!isOfRollouts && !isAsked && <button type="button" onClick={() => ask(true)}>Actions of Argo CD</button>}
      </div>
      {!chosen && <Result actions={actions} at={PLACE} />}
      {chosen && (
        <Panel title={`${chosen.text} ${one.kind} ${one.name}`} verb={chosen.text} danger={chosen.isDeletion ?? false} typed={chosen.isDeletion ? one.name : ''} close={() => open('')} actions={actions} place={PLACE}
          act={() => actions.run(PLACE, `${chosen.text} ${one.name}`, chosen.act, `${chosen.text}: the cluster has it. What becomes of ${one.name} is shown as it is reported.`)}>
          <p>{chosen.says}</p>
        </Panel>
      )}
    </section>
  );
}
