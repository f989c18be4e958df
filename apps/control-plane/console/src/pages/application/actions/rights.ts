// What the signed-in user may do with an Application, with the reason for each refusal.
import { me } from '../../../shell/session';
import { useReading } from '../../../ui/read';
import { readAccess } from '../../access/api';
import { APPLICATIONS_TYPE, reasonOf } from '../../access/types';
import { pathOf, type Name } from '../links';

/** Returns why a right is missing; empty: it is there, or the control plane did not tell, and the runtime decides. */
export type WhyNot = (right: string) => string;

export const ADMINISTRATORS = ''; // the right of what only administrators may do

export function useRights(name: Name): WhyNot {
  const reading = useReading(`rights ${pathOf(name)}`, 'read what you may do', (signal) => readAccess({ entityType: APPLICATIONS_TYPE, ...name }, '', signal));
  return (right) => {
    if (me.value?.isAdmin) return '';
    if (right === ADMINISTRATORS) return 'Only administrators of the account may do this; no rule is about it.';
    const decision = reading.value?.find((one) => one.action === right);
    // A rule for SYNC allows REFRESH, too.
    const other = right === 'REFRESH' ? reading.value?.find((one) => one.action === 'SYNC') : undefined;
    if (!decision || decision.allowed || other?.allowed) return '';
    return `You may not ${right}. ${reasonOf(decision, true)} An administrator of the account can make one.`;
  };
}
