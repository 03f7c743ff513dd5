"""Prints the token for an EKS cluster, signed by AWS's own library: CLUSTER REGION TIME, with credentials from the
environment."""

import base64
import datetime
import sys

import botocore.auth
import botocore.awsrequest
import botocore.session

cluster, region, time = sys.argv[1:]
botocore.auth.get_current_datetime = lambda: datetime.datetime.fromisoformat(time)
session = botocore.session.get_session()
client = session.create_client("sts", region_name=region)
request = {
    "method": "GET",
    "url": f"https://sts.{region}.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15",
    "body": {},
    "headers": {"x-k8s-aws-id": cluster},
    "context": {},
}
url = client._request_signer.generate_presigned_url(request, "", expires_in=60, region_name=region)
print("k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("="))
