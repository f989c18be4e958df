// Requests of the pages of access; docs/reference/control-plane/api.md says who may send them.
import { ACCESS, CREATE_RULE, REMOVE_RULE, RULES, USERS_WITH_ACCESS } from '../../data/documents';
import { query, request, requestText } from '../../data/request';
import { isKey, type Decision, type Key, type Rule, type ServiceAccount, type Team, type User } from './types';

const part = encodeURIComponent;

/** Reads a list. Anything else is a failed reading, never an empty list. */
async function list<T>(tried: string, address: string, signal?: AbortSignal): Promise<T[]> {
  return request<T[]>(tried, address, { ...(signal && { signal }), wrong: (answer) => (Array.isArray(answer) ? '' : 'The response is no list.') });
}

export const readUsers = (account: string, signal?: AbortSignal) => list<User>('read the users', `/api/accounts/${part(account)}/users`, signal);
export const readTeams = (signal?: AbortSignal) => list<Team>('read the teams', '/api/team', signal);
export const readServiceAccounts = (signal?: AbortSignal) => list<ServiceAccount>('read the service accounts', '/api/service-users', signal);

/** Keys of the caller, or of a service account. */
const keysAt = (owner: string) => (owner ? `/api/auth/key/service-user/${part(owner)}` : '/api/auth/key');
export const readKeys = (owner: string, signal?: AbortSignal) => list<Key>('read the keys', owner ? keysAt(owner) : '/api/auth/keys', signal);
export const revokeKey = (owner: string, id: string) => request('revoke the key', `${keysAt(owner)}/${part(id)}`, { method: 'DELETE' });

/** Makes a key and returns its text, which is never shown again. */
export async function createKey(owner: string, wanted: { name: string; scopes: string[]; expires?: string }): Promise<string> {
  return (await requestText('create the key', keysAt(owner), { method: 'POST', body: wanted,
    wrong: (text) => (isKey((text as string).trim()) ? '' : 'The response has no key. If the list has a new one, revoke it.') })).trim();
}

/** Invites an address. The answer has a link, or the member who has this address already. */
export const invite = (account: string, userDetails: string) =>
  request<User & { inviteUrl?: string }>('invite the user', `/api/accounts/${part(account)}/adduser`, { method: 'POST', body: { userDetails } });
export const removeUser = (account: string, id: string) => request('remove the user', `/api/accounts/${part(account)}/${part(id)}`, { method: 'DELETE' });
export const setAdmin = (account: string, id: string, isAdmin: boolean) =>
  request('change the role', `/api/accounts/${part(account)}/${part(id)}/admin`, { method: isAdmin ? 'POST' : 'DELETE' });
export const setDisabled = (id: string, disabled: boolean) =>
  request(disabled ? 'disable the user' : 'enable the user', `/console/api/v1/users/${part(id)}`, { method: 'PATCH', body: { disabled } });

export const createTeam = (name: string) => request<{ _id: string }>('create the team', '/api/team', { method: 'POST', body: { name } });
export const removeTeam = (id: string) => request('delete the team', `/api/team/${part(id)}`, { method: 'DELETE' });
export const renameTeam = (id: string, name: string) => request('rename the team', `/api/team/${part(id)}/renameTeam`, { method: 'PUT', body: { name } });
export const addToTeam = (id: string, user: string) => request('add the user', `/api/team/${part(id)}/${part(user)}/assignUserToTeam`, { method: 'PUT' });
export const removeFromTeam = (id: string, user: string) => request('take the user out', `/api/team/${part(id)}/${part(user)}/deleteUserFromTeam`, { method: 'PUT' });

export interface ServiceAccountValues {
  userName: string;
  teamIds: string[];
  assignAdminRole: boolean;
}
export const createServiceAccount = (values: ServiceAccountValues) => request<ServiceAccount>('create the service account', '/api/service-users', { method: 'POST', body: values });
export const changeServiceAccount = (id: string, values: ServiceAccountValues | { enabled: boolean }) =>
  request('change the service account', `/api/service-users/${part(id)}`, { method: 'PATCH', body: values });
export const removeServiceAccount = (id: string) => request('delete the service account', `/api/service-users/${part(id)}`, { method: 'DELETE' });

export const readRules = async (signal?: AbortSignal) => (await query<{ abacRules: Rule[] }>('read the rules', RULES, {}, signal)).abacRules;
export const createRule = (rule: Omit<Rule, 'id'>) => query('create the rule', CREATE_RULE, { rule });
export const removeRule = (id: string) => query('remove the rule', REMOVE_RULE, { id });

export interface Entity {
  entityType: string;
  runtime: string;
  namespace: string;
  name: string;
}
export const readAccess = async (entity: Entity, userId: string, signal?: AbortSignal) =>
  (await query<{ access: Decision[] }>('read who may do what', ACCESS, userId ? { entity, userId } : { entity }, signal)).access;
export const readUsersWithAccess = async (entity: Entity, action: string, signal?: AbortSignal) =>
  (await query<{ usersWithAccess: Decision[] }>('read who may do it', USERS_WITH_ACCESS, { entity, action }, signal)).usersWithAccess;
