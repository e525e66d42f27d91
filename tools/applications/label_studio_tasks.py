"""Label Studio with a user, projects and tasks, in the database that is configured."""

import django

django.setup()

from organizations.models import Organization  # noqa: E402
from projects.models import Project  # noqa: E402
from tasks.models import Task  # noqa: E402
from users.models import User  # noqa: E402

CHOICES = """
<View>
  <Text name="text" value="$text"/>
  <Choices name="choice" toName="text">
    <Choice value="yes"/><Choice value="no"/>
  </Choices>
</View>
"""

user = User.objects.create_user("admin@localhost.example", "admin")
owned = Organization.create_organization(created_by=user, title="Example")
user.active_organization = owned
user.save()
for name in ("first", "second", "third"):
    project = Project.objects.create(
        title=name, created_by=user, organization=owned, label_config=CHOICES
    )
    tasks = (Task(project=project, data={"text": f"{name} {n}"}) for n in range(100))
    Task.objects.bulk_create(tasks)
