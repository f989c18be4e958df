import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

import { failureOf, request, type Failure } from '../../data/request';
import { here } from '../../shell/router';
import { me, readMe } from '../../shell/session';
import { Empty, Failed, Loading } from '../../ui/parts';
import { useReading } from '../../ui/read';
import { exact, milliseconds } from '../../ui/time';

interface Invitation {
  account: string;
  email: string;
  userName: string | null;
  expires: string;
}
const ADDRESS = '/console/api/v1/invitation';

/** Where the link of an invitation leads: a new person chooses a name and a password, a signed-in one joins. */
export function InvitationPage() {
  const token = here.value.query.get('token') ?? '';
  const reading = useReading(token, 'read the invitation', (signal) => request<Invitation>('read the invitation', `${ADDRESS}?token=${encodeURIComponent(token)}`, { signal }));
  const failure = useSignal<Failure | null>(null);
  const busy = useSignal(false);
  useEffect(() => {
    document.title = 'Invitation · GitOps console';
    if (!me.value) void readMe();
  }, []);
  const accept = async (body: object) => {
    busy.value = true;
    failure.value = null;
    try {
      await request('accept the invitation', ADDRESS, { method: 'POST', body: { token, ...body } });
      location.replace('/'); // with the policy of this user
    } catch (error) {
      failure.value = failureOf('accept the invitation', error);
    } finally {
      busy.value = false;
    }
  };
  const send = (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    void accept({ name: String(form.get('name')), password: String(form.get('password')) });
  };
  const invitation = reading.value;
  const user = me.value;
  return (
    <main class="alone sign-in">
      <h1><img src="/icon.svg" alt="" width="28" height="28" />Invitation</h1>
      {reading.failure && (reading.failure.status === 404
        ? <Empty title="This invitation can't be used"><p>It was used, withdrawn, or has expired. Ask who sent it for another one.</p><p><a href="/sign-in">Sign in</a></p></Empty>
        : <Failed failure={reading.failure} retry={reading.again} />)}
      {!invitation && !reading.failure && <Loading what="the invitation" rows={3} />}
      {invitation && <p>You are invited to the account <strong>{invitation.account}</strong>{invitation.email && <> as <strong>{invitation.email}</strong></>}. It is open until <time title={exact(milliseconds(invitation.expires))}>{exact(milliseconds(invitation.expires))}</time>.</p>}
      {failure.value && <Failed failure={failure.value} />}
      {invitation && user && (
        <div class="fields">
          <button type="button" class="primary" disabled={busy.value} onClick={() => void accept({})}>Join as {user.name}</button>
        </div>
      )}
      {invitation && !user && (
        <form class="fields" onSubmit={send}>
          <label>Name<input name="name" autocomplete="username" required defaultValue={invitation.userName ?? ''} autocapitalize="off" spellcheck={false} /></label>
          <label>Password<input name="password" type="password" autocomplete="new-password" required /></label>
          <button type="submit" class="primary" disabled={busy.value}>Accept</button>
          <p class="mute small">You have a user already? <a href={`/sign-in?to=${encodeURIComponent(`/invitation?token=${token}`)}`}>Sign in</a> and join with it.</p>
        </form>
      )}
    </main>
  );
}
